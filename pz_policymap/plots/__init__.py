"""Pictures of assignments and results. Each function draws into an `Axes` and returns it.

    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 6), layout="constrained")
    pm.plots.payoff(figure.subplots(), payoff)
    figure.savefig("payoff.png")

- `assignments`: which policy controls which agent, episode by episode.
- `payoff`: the win rate of each policy against each other.
- `ratings`: one rating per policy, with its standard error.
- `shares`: the share of all seats or steps that each policy had.

Neither pyplot nor the settings of matplotlib are changed. Install it with `pip install matplotlib`. Every picture can
be read in grey and by colour-blind readers. Sizes are fixed: use about 9 x 5 inches and `layout="constrained"`.
Cells and bars show numbers for up to 20 policies.
"""

from pz_policymap.plots.bars import ratings as ratings
from pz_policymap.plots.bars import shares as shares
from pz_policymap.plots.grids import assignments as assignments
from pz_policymap.plots.grids import payoff as payoff

__all__ = ["assignments", "payoff", "ratings", "shares"]
