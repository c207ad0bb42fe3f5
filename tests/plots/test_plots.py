"""Pictures show what is in the data, touch nothing global, and never let one text lie on another."""

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
from pz_policymap.plots.fitting import EveryNth
from pz_policymap.plots.style import POLICY_COLORS, RATE_COLORS, SMALLEST, ink_on, policy_colors, rate_colors

LONG = "adversary_{}_of_the_team_with_the_long_name"
SIZES = [((4.2, 3.2), None), ((9.0, 7.0), "constrained")]  # inches, and what makes room for names


@functools.cache
def ledger(num_policies, games=3, unplayed=frozenset()):
    """Who has the higher number wins every game but the last; pairs in `unplayed` do not meet."""
    payoff = pm.Payoff(num_policies)
    for low, high in itertools.combinations(range(num_policies), 2):
        if (low, high) not in unplayed:
            for game in range(games):
                won = 1.0 if game < games - 1 or games == 1 else -1.0
                payoff.record(pm.Episode(policies=[low, high], returns=[-won, won]))
    return payoff


def played(num_policies, num_seats=4, episodes=40, **options):
    """Who plays each seat in each episode."""
    assigner = pm.PolicyAssigner(num_policies, list(range(num_seats)), seed=3, **options)
    return np.array([assigner.begin_episodes()[0] for _ in range(episodes)])


def axes_of(size=(6.4, 4.8), layout="constrained"):
    figure = Figure(figsize=size, layout=layout)
    FigureCanvasAgg(figure)
    return figure.subplots()


def boxes(axes):
    """Draws the figure and returns every text that is seen, with the box it fills in pixels."""
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
    """Returns the pairs of texts that lie on one another, by more than rounding."""
    texts, extents = zip(*boxes(axes), strict=True)
    low, high = (np.array([getattr(extent, end) for extent in extents]) for end in ("min", "max"))
    shared = np.minimum(high[:, None], high) - np.maximum(low[:, None], low)
    return [(texts[i], texts[j]) for i, j in np.argwhere((shared > 0.5).all(axis=-1)) if i < j]


def cell_texts(axes):
    """Returns the texts in the cells that are seen once it is drawn, by their place."""
    axes.figure.canvas.draw()
    return [(text.get_position(), text.get_text()) for text in axes.texts if text.get_visible()]


PICTURES = {
    "assignments": lambda axes, n: pm.plots.assignments(
        axes, played(n, num_seats=n, warmup_episodes=3), [LONG.format(i) for i in range(n)], n, 10, 3
    ),
    "payoff": lambda axes, n: pm.plots.payoff(axes, ledger(n, unplayed=frozenset({(0, 1)}))),
    "payoff with names": lambda axes, n: pm.plots.payoff(axes, ledger(n), [LONG.format(i) for i in range(n)]),
    "ratings": lambda axes, n: pm.plots.ratings(axes, ledger(n), [LONG.format(i) for i in range(n)]),
    "shares": lambda axes, n: pm.plots.shares(axes, np.arange(1, n + 1), names=[LONG.format(i) for i in range(n)]),
    "compared shares": lambda axes, n: pm.plots.shares(axes, {"a": np.arange(1, n + 1), "b": np.ones(n)}),
}


class TestTexts:
    @pytest.mark.parametrize(("size", "layout"), SIZES)
    @pytest.mark.parametrize("num_policies", [2, 8, 30])
    @pytest.mark.parametrize("picture", PICTURES)
    def test_none_lies_on_another_and_none_is_too_small_to_read(self, picture, num_policies, size, layout):
        axes = axes_of(size, layout)
        PICTURES[picture](axes, num_policies)
        assert overlapping(axes) == []
        sizes = [text.get_fontsize() for text in axes.texts if text.get_visible()]
        assert min(sizes, default=SMALLEST) >= SMALLEST

    def test_the_search_for_overlaps_finds_some(self):
        axes = axes_of()
        pm.plots.payoff(axes, ledger(2))
        axes.text(0.0, 0.2, "0.5")
        axes.text(0.02, 0.22, "0.6")
        assert ("0.5", "0.6") in overlapping(axes)
        axes = axes_of((4.0, 1.0))
        axes.set_yticks(np.arange(9), [LONG.format(i) for i in range(9)])
        assert overlapping(axes)

    def test_numbers_come_and_go_with_the_room_there_is(self):
        axes = axes_of()
        pm.plots.payoff(axes, ledger(8))
        for size, count in [((6.0, 4.5), 2 * 56), ((3.2, 2.4), 56), ((1.6, 1.2), 0), ((6.0, 4.5), 2 * 56)]:
            axes.figure.set_size_inches(size)
            assert len(cell_texts(axes)) == count, size

    def test_names_come_and_go_with_the_room_there_is_and_stay_beside_their_rows(self):
        axes = axes_of((6.0, 6.0))
        pm.plots.ratings(axes, ledger(30), order=range(30))
        for height, step in [(6.0, 1), (3.5, 2), (1.9, 5), (6.0, 1)]:
            axes.figure.set_size_inches(6.0, height)
            axes.figure.canvas.draw()
            names = [label.get_text() for label in axes.get_yticklabels()]
            assert [int(name) for name in names] == axes.get_yticks().tolist() == list(range(0, 30, step))

    def test_long_names_keep_both_ends_and_are_numbered_where_these_do_not_tell_them_apart(self):
        def names(*agents):
            axes = pm.plots.assignments(axes_of(), played(2, num_seats=2), agents)
            return [label.get_text() for label in axes.get_yticklabels()]

        assert names("adversary_0", "an_adversary_whose_name_is_long_1") == [
            "adversary_0",
            "an_adversary…me_is_long_1",
        ]
        alike = "same_beginning_{}_and_the_same_end"
        assert names(alike.format(0), alike.format(1)) == ["0 same_beginni…the_same_end", "1 same_beginni…the_same_end"]

    def test_a_name_is_no_formula(self):
        axes = pm.plots.assignments(axes_of(), played(2, num_seats=2), ["$x$", "a_b^c"])
        shown = [text for text, _ in boxes(axes)]
        assert r"\$x\$" in shown  # as matplotlib spells a dollar sign
        assert "a_b^c" in shown


class TestAssignments:
    @pytest.mark.parametrize("num_policies", [2, 8, 10, 11, 30])
    def test_every_cell_has_the_colour_of_the_policy_that_played(self, num_policies):
        ids = played(num_policies, resample_every=7)
        ids[14:21, 2] = -1
        axes = pm.plots.assignments(axes_of(), ids, num_policies=num_policies)
        (image,) = axes.images
        drawn = image.get_array()
        np.testing.assert_array_equal(drawn.filled(-1), ids.T)
        colors = image.to_rgba(drawn)
        expected = policy_colors(num_policies)(ids.T)
        np.testing.assert_allclose(colors[ids.T >= 0], expected[ids.T >= 0])
        assert len({tuple(color) for color in policy_colors(num_policies)(np.arange(num_policies))}) == num_policies

    def test_the_number_of_the_policy_stands_in_the_middle_of_every_block_of_every_seat(self):
        ids = np.repeat([[0, 1], [1, 1], [3, -1]], [2, 4, 4], axis=0)
        axes = pm.plots.assignments(axes_of(), ids)
        expected = [((0.5, 0), "0"), ((3.5, 0), "1"), ((7.5, 0), "3"), ((0.5, 1), "1"), ((3.5, 1), "1")]
        assert sorted(cell_texts(axes)) == sorted(expected)

    @pytest.mark.parametrize(
        ("options", "borders"),
        [
            ({}, [3.5, 7.5]),  # where the assignments change
            ({"resample_every": 4}, [3.5, 7.5]),
            ({"resample_every": 2}, [1.5, 3.5, 5.5, 7.5, 9.5]),  # draws that changed nothing are seen
            ({"resample_every": 4, "warmup_episodes": 2}, [0.5, 3.5, 7.5]),
        ],
    )
    def test_a_gap_is_where_a_draw_was_made(self, options, borders):
        ids = np.repeat([[0], [1], [0]], 4, axis=0)
        axes = pm.plots.assignments(axes_of(), ids, **options)
        gaps = next(lines for lines in axes.collections if isinstance(lines, LineCollection))
        assert [segment[0][0] for segment in gaps.get_segments()] == borders

    def test_who_is_nobody_is_hatched(self):
        ids = np.array([[0, 1], [0, 1], [0, -1]])
        axes = pm.plots.assignments(axes_of(), ids)
        (hatched,) = [c for c in axes.collections if c.get_hatch()]
        (outline,) = hatched.get_paths()
        assert outline.get_extents().extents.tolist() == [1.5, 0.5, 2.5, 1.5]

    @pytest.mark.parametrize(
        ("arguments", "error", "message"),
        [
            ({"policy_ids": [0, 1]}, ValueError, r"policy_ids must have the shape \(num_episodes, num_seats\).*\(2,\)"),
            ({"policy_ids": np.zeros((0, 2), int)}, ValueError, r"policy_ids must .* got shape \(0, 2\)"),
            ({"policy_ids": [[0, 1], [0]]}, ValueError, "policy_ids must have the shape"),
            ({"policy_ids": [[0.0, 1.0]]}, TypeError, "policy_ids must be integers, got float64"),
            ({"policy_ids": [[True, False]]}, TypeError, "policy_ids must be integers, got bool"),
            ({"policy_ids": [[0, -2]]}, ValueError, r"policy_ids must be from -1 \(nobody\) to \d+, got -2 to 0"),
            ({"agents": ["a"]}, ValueError, r"agents must hold 2 names, one a seat, got 1: \['a'\]"),
            ({"agents": "ab"}, TypeError, "agents must be a sequence, one name a seat, got 'ab'"),
            ({"num_policies": 1}, ValueError, "num_policies must be at least 2, got 1"),
            ({"resample_every": 0}, ValueError, "resample_every must be from 1"),
            ({"resample_every": 3}, ValueError, "resample_every=3 and warmup_episodes=0, but they change at episode 1"),
            ({"warmup_episodes": 2}, ValueError, "warmup_episodes=2 needs resample_every, got None"),
        ],
    )
    def test_what_cannot_be_drawn_is_named(self, arguments, error, message):
        arguments = {"policy_ids": [[0, 1], [1, 0]], **arguments}
        with pytest.raises(error, match=message):
            pm.plots.assignments(axes_of(), **arguments)


class TestPayoff:
    def test_cells_are_win_rates_by_rating_with_the_diagonal_blank_and_unplayed_pairs_hatched(self):
        payoff = ledger(4, games=4, unplayed=frozenset({(0, 2)}))
        axes = pm.plots.payoff(axes_of(), payoff)
        order = [3, 2, 1, 0]  # who has the higher number wins
        drawn = axes.images[0].get_array()
        expected = payoff.win_rates[np.ix_(order, order)]
        blank = np.eye(4, dtype=bool)
        blank[1, 3] = blank[3, 1] = True  # 2 against 0
        np.testing.assert_array_equal(drawn.mask, blank)
        np.testing.assert_array_equal(drawn.data[~blank], expected[~blank])
        (hatched,) = [c for c in axes.collections if c.get_hatch()]
        corners = sorted(tuple(path.get_extents().extents) for path in hatched.get_paths())
        assert corners == [(0.5, 2.5, 1.5, 3.5), (2.5, 0.5, 3.5, 1.5)]
        for labels in (axes.get_xticklabels(), axes.get_yticklabels()):
            assert [label.get_text() for label in labels] == ["3", "2", "1", "0"]

    def test_numbers_are_the_win_rate_and_below_it_the_games(self):
        payoff = ledger(2, games=4)  # three wins of four, and one and one beforehand: 4 of 6
        axes = pm.plots.payoff(axes_of(), payoff)
        assert cell_texts(axes) == [((1, 0), "0.67"), ((0, 1), "0.33"), ((1, 0), "4"), ((0, 1), "4")]

    def test_names_that_columns_have_no_room_for_stand_beside_the_rows_with_the_numbers_of_the_columns(self):
        names = ["random", "a policy whose name is long", "$"]
        axes = pm.plots.payoff(axes_of((4.0, 3.0)), ledger(3), names)
        assert [label.get_text() for label in axes.get_xticklabels()] == ["2", "1", "0"]
        rows = [label.get_text() for label in axes.get_yticklabels()]
        assert rows == [r"2 \$", "1 a policy who…name is long", "0 random"]
        axes = pm.plots.payoff(axes_of(), ledger(3), ["a", "b", "c"])
        assert [label.get_text() for label in axes.get_xticklabels()] == ["c", "b", "a"]

    def test_policies_can_be_chosen_and_named(self):
        payoff = ledger(4)
        axes = pm.plots.payoff(axes_of(), payoff, names=["a", "b", "c", "d"], order=[1, 3])
        assert [label.get_text() for label in axes.get_yticklabels()] == ["b", "d"]
        assert axes.images[0].get_array()[0, 1] == payoff.win_rates[1, 3]

    def test_a_ledger_without_a_prior_is_ordered_all_the_same(self):
        payoff = pm.Payoff(3, prior=0.0)
        payoff.record(pm.Episode(policies=[0, 2], returns=[0.0, 1.0]))
        axes = pm.plots.payoff(axes_of(), payoff)
        assert [label.get_text() for label in axes.get_yticklabels()] == ["2", "1", "0"]

    def test_the_key_can_be_left_out(self):
        with_key, without = (pm.plots.payoff(axes_of(), pm.Payoff(2), key=key) for key in (True, False))
        assert len(with_key.child_axes) == 1
        assert without.child_axes == []

    def test_ticks_can_be_asked_for_without_an_axis(self):
        assert EveryNth(5, characters=1).tick_values(0.5, 3.0).tolist() == [1, 2, 3]

    def test_a_population_of_one_and_a_ledger_without_games_can_be_drawn(self):
        for size in (1, 3):
            axes = pm.plots.payoff(axes_of(), pm.Payoff(size))
            assert axes.images[0].get_array().mask.all()
            assert cell_texts(axes) == []

    @pytest.mark.parametrize(
        ("arguments", "error", "message"),
        [
            ({"payoff": np.eye(3)}, TypeError, "payoff must be a Payoff, got array"),
            ({"names": ["a"]}, ValueError, "names must hold 3 names, one a policy, got 1"),
            ({"order": [0, 3]}, ValueError, r"order\[1\] must be from 0 to 2, got 3"),
            ({"order": [0, 0]}, ValueError, r"order must hold distinct policies, at least one, got \[0, 0\]"),
            ({"order": []}, ValueError, "order must hold distinct policies, at least one"),
            ({"order": "01"}, TypeError, "order must be a sequence of policies, got '01'"),
        ],
    )
    def test_what_cannot_be_drawn_is_named(self, arguments, error, message):
        with pytest.raises(error, match=message):
            pm.plots.payoff(axes_of(), **{"payoff": pm.Payoff(3), **arguments})


class TestRatings:
    @pytest.mark.parametrize("give", [lambda payoff: payoff, pm.Payoff.ratings], ids=["ledger", "ratings"])
    def test_points_and_lines_are_ratings_and_their_errors_the_best_on_top(self, give):
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
            ([1.0, 2.0], TypeError, "ratings must be a Payoff, or what its ratings"),
            (pm.Payoff(3, prior=0.0), ValueError, "prior must be above 0"),
            (pm.Payoff(2).ratings()._replace(errors=np.zeros(3)), ValueError, "ratings must hold one finite value"),
            (
                pm.Payoff(2).ratings()._replace(values=np.array([0.0, np.nan])),
                ValueError,
                "ratings must hold one finite",
            ),
        ],
    )
    def test_what_cannot_be_drawn_is_named(self, ratings, error, message):
        with pytest.raises(error, match=message):
            pm.plots.ratings(axes_of(), ratings)


class TestShares:
    def test_bars_are_shares_and_marks_are_the_ideal(self):
        axes = pm.plots.shares(axes_of(), [30, 50, 20], ideal=[2, 1, 1], names=["a", "b", "c"])
        assert [float(bar.get_width()) for bar in axes.patches] == [0.3, 0.5, 0.2]
        assert [bar.get_y() + bar.get_height() / 2 for bar in axes.patches] == pytest.approx([0, 1, 2])
        for marks in axes.collections:
            assert [segment[0][0] for segment in marks.get_segments()] == [0.5, 0.25, 0.25]
        assert [text for _, text in cell_texts(axes)] == ["30.0%", "50.0%", "20.0%"]
        assert [label.get_text() for label in axes.get_yticklabels()] == ["a", "b", "c"]

    def test_without_an_ideal_all_are_due_the_same(self):
        axes = pm.plots.shares(axes_of(), [1, 0, 0, 0])
        assert [segment[0][0] for segment in axes.collections[0].get_segments()] == [0.25] * 4

    def test_several_counts_are_compared_side_by_side_and_named(self):
        axes = pm.plots.shares(axes_of(), {"Balanced": [5, 5], "Uniform": [9, 3]})
        assert [float(bar.get_width()) for bar in axes.patches] == [0.5, 0.5, 0.75, 0.25]
        tops = [(bar.get_y(), bar.get_y() + bar.get_height()) for bar in axes.patches]
        assert all(a[1] < b[0] for a, b in itertools.pairwise(sorted(tops)))
        assert [text.get_text() for text in axes.get_legend().get_texts()] == ["Balanced", "Uniform", "ideal"]

    @pytest.mark.parametrize(
        ("arguments", "error", "message"),
        [
            ({"counts": [[1, 2]]}, ValueError, r"counts must have the shape \(num_policies,\).*\(1, 2\)"),
            ({"counts": []}, ValueError, "counts must have the shape"),
            ({"counts": [0, 0]}, ValueError, "counts must be finite, not negative and not all 0"),
            ({"counts": [1, -1]}, ValueError, "counts must be finite, not negative"),
            ({"counts": ["a", "b"]}, TypeError, "counts must be numbers, one a policy"),
            ({"counts": {}}, ValueError, "counts must name from 1 to 10 of them, got 0"),
            ({"counts": {"a": [1, 2], "b": [1]}}, ValueError, r"counts\['b'\] must have the shape \(2,\)"),
            ({"ideal": [1]}, ValueError, r"ideal must have the shape \(2,\)"),
            ({"ideal": [np.nan, 1]}, ValueError, "ideal must be finite"),
            ({"names": ["a"]}, ValueError, "names must hold 2 names, one a policy"),
        ],
    )
    def test_what_cannot_be_drawn_is_named(self, arguments, error, message):
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
    def test_the_axes_come_back_and_the_figure_has_no_others(self, name):
        axes = axes_of()
        assert DRAW[name](axes) is axes
        assert axes.figure.axes == [axes]

    def test_what_is_no_axes_is_named(self, name):
        with pytest.raises(TypeError, match="axes must be a matplotlib Axes, got <Figure"):
            DRAW[name](Figure())

    def test_without_matplotlib_the_command_that_installs_it_is_named(self, name, monkeypatch):
        axes = axes_of()
        monkeypatch.setitem(sys.modules, "matplotlib.axes", None)
        with pytest.raises(ImportError, match=r"python -m pip install 'pz-policymap\[plot\]'"):
            DRAW[name](axes)


def printed_by(code):
    """What a process of its own prints."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_neither_pyplot_nor_the_settings_of_matplotlib_are_touched():
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


def test_matplotlib_is_imported_by_what_draws_alone():
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

    def test_numbers_can_be_read_on_every_colour(self):
        # The contrast of large text by the Web Content Accessibility Guidelines 2.2 is at least 3.
        from matplotlib.colors import to_rgba

        def luminance(color):
            return ((self.lightness(to_rgba(color)) + 16) / 116) ** 3

        for color in [*POLICY_COLORS, *rate_colors()(np.linspace(0, 1, 101)), *policy_colors(30)(np.arange(30))]:
            pair = sorted([luminance(color), luminance(ink_on(to_rgba(color)))])
            assert (pair[1] + 0.05) / (pair[0] + 0.05) > 3.0
