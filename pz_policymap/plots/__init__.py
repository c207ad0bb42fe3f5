"""Pictures of who plays whom, and of what came of it: an `Axes` in, the same `Axes` out.

    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 6), layout="constrained")
    pm.plots.payoff(figure.subplots(), payoff)
    figure.savefig("payoff.png")

`assignments` shows which policy plays which agent, `payoff` the results between policies, `ratings` one number a
policy, `shares` how much each policy played. Nothing global is touched: neither pyplot's figures nor the settings of
matplotlib, which is an extra: `python -m pip install 'pz-policymap[plot]'`.

Every picture can be read in grey and by colour-blind eyes. Numbers and names are made to fit each time the figure is
drawn: where there is no room for all, they get smaller, and then fewer, but never overlap.
"""

from pz_policymap.plots.bars import ratings as ratings
from pz_policymap.plots.bars import shares as shares
from pz_policymap.plots.grids import assignments as assignments
from pz_policymap.plots.grids import payoff as payoff

__all__ = ["assignments", "payoff", "ratings", "shares"]
