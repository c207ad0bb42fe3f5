"""Pictures show the data, change nothing global, and their texts do not overlap."""

from __future__ import annotations

import functools
import itertools
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("matplotlib")
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.text import Text

import pz_policymap as pm
from pz_policymap.plots.style import POLICY_COLORS, RATE_COLORS, ink_on, policy_colors, rate_colors

LONG = "adversary_{}_of_the_team_with_the_long_name"


@functools.cache
def ledger(num_policies, games=3, unplayed=frozenset()):
    """A ledger in which the higher policy wins every game but the last; pairs in `unplayed` have no game."""
    payoff = pm.Payoff(num_policies)
    for low, high in itertools.combinations(range(num_policies), 2):
        if (low, high) not in unplayed:
            for game in range(games):
                won = 1.0 if game < games - 1 or games == 1 else -1.0
                payoff.record(pm.Episode(policies=[low, high], returns=[-won, won]))
    return payoff


def drawn_ids(num_policies, num_seats=4, episodes=40, **options):
    """The policy of each seat in each episode."""
    return pm.assignments(num_policies, range(num_seats), seed=3, episode=range(episodes), **options)


def axes_of(size=(6.4, 4.8)):
    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    return figure.subplots()


def boxes(axes):
    """Draws the figure and returns every visible text with its box in pixels."""
    figure = axes.figure
    figure.canvas.draw()
    seen = {}

    def collect(artist):
        if not artist.get_visible():
            return
        if isinstance(artist, Text) and artist.get_text().strip():
            seen[id(artist)] = (artist.get_text(), artist.get_window_extent(figure.canvas.get_renderer()))
        if hasattr(artist, "get_majorticklabels"):
            shown = {id(label) for tick in artist._update_ticks() for label in (tick.label1, tick.label2)}
            hidden = {id(label) for label in artist.get_majorticklabels()} - shown
            for label in artist.get_majorticklabels():
                if id(label) not in hidden:
                    collect(label)
            collect(artist.label)
            return
        for child in artist.get_children():
            collect(child)

    collect(axes)
    return list(seen.values())


def overlapping(axes):
    """Returns the pairs of texts that overlap by more than rounding."""
    texts, extents = zip(*boxes(axes), strict=True)
    low, high = (np.array([getattr(extent, end) for extent in extents]) for end in ("min", "max"))
    shared = np.minimum(high[:, None], high) - np.maximum(low[:, None], low)
    return [(texts[i], texts[j]) for i, j in np.argwhere((shared > 0.5).all(axis=-1)) if i < j]


def cell_texts(axes):
    """Returns the texts in cells and bars, with their positions."""
    return [(text.get_position(), text.get_text()) for text in axes.texts]


PICTURES = {
    "assignments": lambda axes, n: pm.plots.assignments(
        axes, drawn_ids(n, num_seats=n, warmup_episodes=3), [LONG.format(i) for i in range(n)], n, 10, 3
    ),
    "payoff": lambda axes, n: pm.plots.payoff(axes, ledger(n, unplayed=frozenset({(0, 1)}))),
    "payoff with names": lambda axes, n: pm.plots.payoff(axes, ledger(n), [LONG.format(i) for i in range(n)]),
    "payoff with one long name": lambda axes, n: pm.plots.payoff(axes, ledger(n), [*range(n - 1), LONG]),
    "ratings": lambda axes, n: pm.plots.ratings(axes, ledger(n), [LONG.format(i) for i in range(n)]),
    "shares": lambda axes, n: pm.plots.shares(axes, np.arange(1, n + 1), names=[LONG.format(i) for i in range(n)]),
    "compared shares": lambda axes, n: pm.plots.shares(axes, {"a": np.arange(1, n + 1), "b": np.ones(n)}),
}


class TestTexts:
    @pytest.mark.parametrize("num_policies", [2, 8, 20, 30])
    @pytest.mark.parametrize("picture", PICTURES)
    def test_texts_do_not_overlap(self, picture, num_policies):
        axes = axes_of((9.0, 6.0))
        PICTURES[picture](axes, num_policies)
        assert overlapping(axes) == []

    def test_overlaps_are_found(self):
        axes = axes_of()
        pm.plots.payoff(axes, ledger(2))
        axes.text(0.0, 0.2, "0.5")
        axes.text(0.02, 0.22, "0.6")
        assert ("0.5", "0.6") in overlapping(axes)

    @pytest.mark.parametrize(("num_policies", "texts"), [(8, 56), (20, 380), (21, 0)])
    def test_cells_have_numbers_up_to_20_policies(self, num_policies, texts):
        axes = pm.plots.payoff(axes_of(), ledger(num_policies))
        assert len(cell_texts(axes)) == texts
        assert len(cell_texts(pm.plots.ratings(axes_of(), ledger(num_policies)))) == (num_policies if texts else 0)
        assert len(cell_texts(pm.plots.shares(axes_of(), np.ones(num_policies)))) == (num_policies if texts else 0)
        ids = np.arange(num_policies)[:, None]
        assert len(cell_texts(pm.plots.assignments(axes_of(), ids))) == (num_policies if texts else 0)

    @pytest.mark.parametrize(("num_policies", "step"), [(30, 1), (33, 2), (100, 5)])
    def test_of_many_labels_every_nth_is_shown(self, num_policies, step):
        axes = pm.plots.ratings(axes_of(), pm.Payoff(num_policies))
        names = [int(label.get_text()) for label in axes.get_yticklabels()]
        assert names == axes.get_yticks().tolist() == list(range(0, num_policies, step))

    def test_long_names_keep_both_ends_and_get_numbers_where_they_become_equal(self):
        def names(*agents):
            axes = pm.plots.assignments(axes_of(), drawn_ids(2, num_seats=2), agents)
            return [label.get_text() for label in axes.get_yticklabels()]

        assert names("adversary_0", "an_adversary_whose_name_is_long_1") == [
            "adversary_0",
            "an_adversary…me_is_long_1",
        ]
        alike = "same_beginning_{}_and_the_same_end"
        assert names(alike.format(0), alike.format(1)) == ["0 same_beginni…the_same_end", "1 same_beginni…the_same_end"]

    def test_dollar_signs_in_names_are_shown(self):
        axes = pm.plots.assignments(axes_of(), drawn_ids(2, num_seats=2), ["$x$", "a_b^c"])
        shown = [text for text, _ in boxes(axes)]
        assert r"\$x\$" in shown  # as matplotlib spells a dollar sign
        assert "a_b^c" in shown


class TestAssignments:
    @pytest.mark.parametrize("num_policies", [2, 8, 10, 11, 30])
    def test_each_cell_has_the_colour_of_its_policy(self, num_policies):
        ids = drawn_ids(num_policies, resample_every=7)
        ids[14:21, 2] = -1
        axes = pm.plots.assignments(axes_of(), ids, num_policies=num_policies)
        (image,) = axes.images
        drawn = image.get_array()
        np.testing.assert_array_equal(drawn.filled(-1), ids.T)
        colors = image.to_rgba(drawn)
        expected = policy_colors(num_policies)(ids.T)
        np.testing.assert_allclose(colors[ids.T >= 0], expected[ids.T >= 0])
        assert len({tuple(color) for color in policy_colors(num_policies)(np.arange(num_policies))}) == num_policies

    def test_the_policy_is_written_in_the_middle_of_each_block(self):
        ids = np.repeat([[0, 1], [1, 1], [3, -1]], [2, 4, 4], axis=0)
        axes = pm.plots.assignments(axes_of(), ids)
        expected = [((0.5, 0), "0"), ((3.5, 0), "1"), ((7.5, 0), "3"), ((0.5, 1), "1"), ((3.5, 1), "1")]
        assert sorted(cell_texts(axes)) == sorted(expected)

    @pytest.mark.parametrize(
        ("options", "borders"),
        [
            ({}, [3.5, 7.5]),  # where the assignments change
            ({"resample_every": 4}, [3.5, 7.5]),
            ({"resample_every": 2}, [1.5, 3.5, 5.5, 7.5, 9.5]),  # resamples that changed nothing are shown
            ({"resample_every": 4, "warmup_episodes": 2}, [0.5, 3.5, 7.5]),
            ({"resample_every": 12}, [3.5, 7.5]),  # changes within a block are shown
        ],
    )
    def test_gaps_are_at_resamples(self, options, borders):
        ids = np.repeat([[0], [1], [0]], 4, axis=0)
        axes = pm.plots.assignments(axes_of(), ids, **options)
        gaps = next(lines for lines in axes.collections if isinstance(lines, LineCollection))
        assert [segment[0][0] for segment in gaps.get_segments()] == borders

    def test_absent_agents_are_hatched(self):
        axes = pm.plots.assignments(axes_of(), np.array([[0, 1], [0, 1], [0, -1]]))
        assert axes.images[0].get_array().mask.tolist() == [[False] * 3, [False, False, True]]
        assert [patch.get_hatch() for patch in axes.patches] == ["////"]
        assert not pm.plots.assignments(axes_of(), np.array([[0, 1]])).patches

    @pytest.mark.parametrize(
        ("arguments", "error", "message"),
        [
            ({"policy_ids": [0, 1]}, ValueError, r"policy_ids must have shape \(num_episodes, num_seats\).*\(2,\)"),
            ({"policy_ids": np.zeros((0, 2), int)}, ValueError, r"policy_ids must have shape .*, got \(0, 2\)"),
            ({"policy_ids": [[0.0, 1.0]]}, TypeError, "policy_ids must be integers, got float64"),
            ({"policy_ids": [[True, False]]}, TypeError, "policy_ids must be integers, got bool"),
            ({"policy_ids": [[0, -2]]}, ValueError, r"policy_ids must be from -1 to \d+, got -2 to 0"),
            ({"agents": ["a"]}, ValueError, r"agents must hold 2 names, got 1: \['a'\]"),
            ({"num_policies": 1}, ValueError, "num_policies must be .*, got 1"),
            ({"resample_every": 0}, ValueError, "resample_every must be .*1.*, got 0"),
        ],
    )
    def test_invalid_arguments_raise(self, arguments, error, message):
        arguments = {"policy_ids": [[0, 1], [1, 0]], **arguments}
        with pytest.raises(error, match=message):
            pm.plots.assignments(axes_of(), **arguments)


class TestPayoff:
    def test_cells_are_win_rates_with_a_blank_diagonal_and_hatched_unplayed_pairs(self):
        payoff = ledger(4, games=4, unplayed=frozenset({(0, 2)}))
        axes = pm.plots.payoff(axes_of(), payoff)
        order = [3, 2, 1, 0]  # the higher policy wins
        drawn = axes.images[0].get_array()
        expected = payoff.win_rates[np.ix_(order, order)]
        blank = np.eye(4, dtype=bool)
        blank[1, 3] = blank[3, 1] = True  # 2 against 0
        np.testing.assert_array_equal(drawn.mask, blank)
        np.testing.assert_array_equal(drawn.data[~blank], expected[~blank])
        assert [patch.get_hatch() for patch in axes.patches] == ["////"]
        np.testing.assert_array_equal(axes.images[1].get_array().mask, ~np.eye(4, dtype=bool))
        for labels in (axes.get_xticklabels(), axes.get_yticklabels()):
            assert [label.get_text() for label in labels] == ["3", "2", "1", "0"]

    def test_numbers_are_the_win_rate_and_the_number_of_games(self):
        payoff = ledger(2, games=4)  # three wins of four, with a prior of one and one: 4 of 6
        axes = pm.plots.payoff(axes_of(), payoff)
        assert cell_texts(axes) == [((1, 0), "0.67\n4"), ((0, 1), "0.33\n4")]
        assert "0.67" not in {text for _, text in cell_texts(pm.plots.payoff(axes_of(), ledger(10)))}
        assert {text for _, text in cell_texts(pm.plots.payoff(axes_of(), ledger(11)))} == {"0.60", "0.40"}

    def test_long_names_of_columns_stand_upright(self):
        rotations = {
            length: pm.plots.payoff(axes_of(), pm.Payoff(5), [f"{i:0{length}}" for i in range(5)])
            .get_xticklabels()[0]
            .get_rotation()
            for length in (5, 20)
        }
        assert rotations == {5: 0.0, 20: 90.0}

    def test_order_and_names_select_policies(self):
        payoff = ledger(4)
        axes = pm.plots.payoff(axes_of(), payoff, names=["a", "b", "c", "d"], order=[1, 3])
        assert [label.get_text() for label in axes.get_yticklabels()] == ["b", "d"]
        assert axes.images[0].get_array()[0, 1] == payoff.win_rates[1, 3]

    def test_a_ledger_without_a_prior_is_ordered(self):
        payoff = pm.Payoff(3, prior=0.0)
        payoff.record(pm.Episode(policies=[0, 2], returns=[0.0, 1.0]))
        axes = pm.plots.payoff(axes_of(), payoff)
        assert [label.get_text() for label in axes.get_yticklabels()] == ["2", "1", "0"]

    def test_the_key_can_be_left_out(self):
        with_key, without = (pm.plots.payoff(axes_of(), pm.Payoff(2), key=key) for key in (True, False))
        assert len(with_key.child_axes) == 1
        assert without.child_axes == []

    def test_a_population_of_one_and_a_ledger_without_games_can_be_drawn(self):
        for size in (1, 3):
            axes = pm.plots.payoff(axes_of(), pm.Payoff(size))
            assert axes.images[0].get_array().mask.all()
            assert cell_texts(axes) == []

    @pytest.mark.parametrize(
        ("arguments", "error", "message"),
        [
            ({"names": ["a"]}, ValueError, "names must hold 3 names, got 1"),
            ({"order": [0, 3]}, ValueError, r"order\[1\] must be from 0 to 2, got 3"),
            ({"order": [0, 0]}, ValueError, r"order must hold distinct policies, at least one, got \[0, 0\]"),
            ({"order": []}, ValueError, "order must hold distinct policies, at least one"),
        ],
    )
    def test_invalid_arguments_raise(self, arguments, error, message):
        with pytest.raises(error, match=message):
            pm.plots.payoff(axes_of(), **{"payoff": pm.Payoff(3), **arguments})


class TestRatings:
    @pytest.mark.parametrize("give", [lambda payoff: payoff, pm.Payoff.ratings], ids=["ledger", "ratings"])
    def test_points_are_ratings_and_lines_their_errors(self, give):
        payoff = ledger(5)
        axes = pm.plots.ratings(axes_of(), give(payoff))
        values, errors = (part[::-1] for part in payoff.ratings())
        points = next(line for line in axes.lines if line.get_marker() == "o")
        np.testing.assert_array_equal(points.get_xdata(), values)
        np.testing.assert_array_equal(points.get_ydata(), range(5))
        segments = np.array(axes.collections[0].get_segments())
        np.testing.assert_allclose(segments[:, :, 0], np.column_stack([values - errors, values + errors]))
        assert axes.get_ylim()[0] > axes.get_ylim()[1]
        assert [label.get_text() for label in axes.get_yticklabels()] == ["4", "3", "2", "1", "0"]
        shown = [f"{v:+.0f} ± {e:.0f}".replace("-", "\N{MINUS SIGN}") for v, e in zip(values, errors, strict=True)]
        assert [text for _, text in cell_texts(axes)] == shown

    def test_the_column_of_numbers_lies_beyond_every_error(self):
        axes = pm.plots.ratings(axes_of(), ledger(5))
        axes.figure.canvas.draw()
        last = max(segment[:, 0].max() for segment in axes.collections[0].get_segments())
        first = min(text.get_window_extent().x0 for text in axes.texts)
        assert first > axes.transData.transform((last, 0.0))[0]

    @pytest.mark.parametrize(
        ("ratings", "error", "message"),
        [
            (pm.Payoff(3, prior=0.0), ValueError, "prior must be above 0"),
        ],
    )
    def test_invalid_arguments_raise(self, ratings, error, message):
        with pytest.raises(error, match=message):
            pm.plots.ratings(axes_of(), ratings)


class TestShares:
    def test_bars_are_shares_and_lines_the_ideal(self):
        axes = pm.plots.shares(axes_of(), [30, 50, 20], ideal=[2, 1, 1], names=["a", "b", "c"])
        assert [float(bar.get_width()) for bar in axes.patches] == [0.3, 0.5, 0.2]
        assert [bar.get_y() + bar.get_height() / 2 for bar in axes.patches] == pytest.approx([0, 1, 2])
        for marks in axes.collections:
            assert [segment[0][0] for segment in marks.get_segments()] == [0.5, 0.25, 0.25]
        assert [text for _, text in cell_texts(axes)] == ["30.0%", "50.0%", "20.0%"]
        assert [label.get_text() for label in axes.get_yticklabels()] == ["a", "b", "c"]

    def test_the_default_ideal_is_equal_shares(self):
        axes = pm.plots.shares(axes_of(), [1, 0, 0, 0])
        assert [segment[0][0] for segment in axes.collections[0].get_segments()] == [0.25] * 4

    def test_several_counts_are_compared_by_name(self):
        axes = pm.plots.shares(axes_of(), {"Balanced": [5, 5], "Uniform": [9, 3]})
        assert [float(bar.get_width()) for bar in axes.patches] == [0.5, 0.5, 0.75, 0.25]
        tops = [(bar.get_y(), bar.get_y() + bar.get_height()) for bar in axes.patches]
        assert all(a[1] < b[0] for a, b in itertools.pairwise(sorted(tops)))
        assert [text.get_text() for text in axes.get_legend().get_texts()] == ["Balanced", "Uniform", "ideal"]

    @pytest.mark.parametrize(
        ("arguments", "error", "message"),
        [
            ({"counts": [[1, 2]]}, ValueError, r"counts must have shape \(num_policies,\), got \(1, 2\)"),
            ({"counts": []}, ValueError, "counts must have shape"),
            ({"counts": [0, 0]}, ValueError, "counts must be finite numbers >= 0, not all 0"),
            ({"counts": [1, -1]}, ValueError, "counts must be finite numbers >= 0"),
            ({"counts": {}}, ValueError, "counts must have from 1 to 10 entries, got 0"),
            ({"counts": {"a": [1, 2], "b": [1]}}, ValueError, r"counts\['b'\] must have shape \(2,\)"),
            ({"ideal": [1]}, ValueError, r"ideal must have shape \(2,\)"),
            ({"ideal": [np.nan, 1]}, ValueError, "ideal must be finite"),
            ({"names": ["a"]}, ValueError, "names must hold 2 names"),
        ],
    )
    def test_invalid_arguments_raise(self, arguments, error, message):
        with pytest.raises(error, match=message):
            pm.plots.shares(axes_of(), **{"counts": [1, 2], **arguments})


DRAW = {
    "assignments": lambda axes: pm.plots.assignments(axes, [[0, 1]]),
    "payoff": lambda axes: pm.plots.payoff(axes, pm.Payoff(2)),
    "ratings": lambda axes: pm.plots.ratings(axes, pm.Payoff(2)),
    "shares": lambda axes: pm.plots.shares(axes, [1, 1]),
}


@pytest.mark.parametrize("name", DRAW)
class TestAxes:
    def test_axes_are_returned_and_no_others_made(self, name):
        axes = axes_of()
        assert DRAW[name](axes) is axes
        assert axes.figure.axes == [axes]


def printed_by(code):
    """The output of a separate process."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_pyplot_and_settings_are_unchanged():
    code = """
import io, sys
from matplotlib import rcParams
from matplotlib.figure import Figure
import pz_policymap as pm
names = set(rcParams) - {"backend"}  # to ask for the backend imports pyplot
before = {name: rcParams[name] for name in names}
axes = Figure().subplots(2, 2).ravel()
pm.plots.assignments(axes[0], [[0, 1], [1, -1]])
pm.plots.payoff(axes[1], pm.Payoff(3))
pm.plots.ratings(axes[2], pm.Payoff(3))
pm.plots.shares(axes[3], {"a": [1, 1], "b": [2, 1]})
axes[0].figure.savefig(io.BytesIO())
print([name for name in sys.modules if "pyplot" in name], all(rcParams[name] == before[name] for name in names))
"""
    assert printed_by(code) == "[] True\n"


def test_import_of_plots_does_not_import_matplotlib():
    assert (
        printed_by("import sys, pz_policymap as pm; pm.plots.payoff; print('matplotlib' in sys.modules)") == "False\n"
    )


class TestColours:
    @staticmethod
    def lightness(colors):
        """CIE 1976 L* of sRGB colours, from 0 to 100 (IEC 61966-2-1, D65)."""
        rgb = np.asarray(colors)[..., :3]
        linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
        y = linear @ [0.2126, 0.7152, 0.0722]
        return np.where(y > 216 / 24389, 116 * np.cbrt(y) - 16, y * 24389 / 27)

    def test_policies_differ_in_lightness(self):
        lightness = np.sort(self.lightness(policy_colors(len(POLICY_COLORS))(np.arange(len(POLICY_COLORS)))))
        assert np.diff(lightness).min() > 5.0
        assert np.diff(np.sort(self.lightness(policy_colors(4)(np.arange(4))))).min() > 8.0

    def test_win_rates_get_lighter_as_they_rise(self):
        assert (np.diff(self.lightness(rate_colors()(np.linspace(0.0, 1.0, len(RATE_COLORS) * 20)))) > 0.0).all()

    def test_numbers_have_contrast_on_every_colour(self):
        # The contrast of large text by the Web Content Accessibility Guidelines 2.2 is at least 3.
        from matplotlib.colors import to_rgba

        def luminance(color):
            return ((self.lightness(to_rgba(color)) + 16) / 116) ** 3

        for color in [*POLICY_COLORS, *rate_colors()(np.linspace(0, 1, 101)), *policy_colors(30)(np.arange(30))]:
            pair = sorted([luminance(color), luminance(ink_on(to_rgba(color)))])
            assert (pair[1] + 0.05) / (pair[0] + 0.05) > 3.0
