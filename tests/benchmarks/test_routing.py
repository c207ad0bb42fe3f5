"""Cost of grouping rows by policy, and of many policies in one batch."""

import numpy as np
import pytest

from pz_policymap import PolicyGroups


@pytest.fixture(scope="module", autouse=True)
def _busy_heap():
    """Frees a batch of observations, as a training run has done before.

    The C library hands large blocks back to the system, and faults them in anew, until a larger one has been freed.
    """
    observations = np.ones((65_536, 32))
    del observations


def test_many_rows_are_grouped(side_by_side, report):
    num_policies = 64
    policy_ids = np.random.default_rng(0).integers(0, num_policies, 65_536).astype(np.int32)
    narrow = policy_ids.astype(np.uint8)
    ours, argsort, masks = side_by_side(
        lambda: list(PolicyGroups(policy_ids)),
        lambda: narrow.argsort(kind="stable"),
        lambda: [np.flatnonzero(policy_ids == policy) for policy in range(num_policies)],
        rounds=51,
    )
    what = "grouping 65,536 rows by 64 policies"
    report(what, "the radix argsort of the narrowest type", ours / argsort, 1.3, 2)
    report(what + ", speed", "one mask per policy", masks / ours, 3, 1.5, more_is_better=True)


def test_a_few_rows_are_grouped(side_by_side, report):
    policy_ids = np.array([3, 1, 0, 2, 1, 3, 3, 0], np.int32)
    (seconds,) = side_by_side(lambda: list(PolicyGroups(policy_ids)))
    report("grouping 8 rows, in microseconds", "20 microseconds", seconds * 1e6, 20, 200)


def test_mixed_batch_costs_about_one_policy(side_by_side, report):
    torch = pytest.importorskip("torch")
    num_rows, num_policies, width = 4096, 8, 256

    def network():
        layers = [torch.nn.Linear(width, width), torch.nn.Tanh(), torch.nn.Linear(width, width), torch.nn.Tanh()]
        return torch.nn.Sequential(*layers)

    policies = [network() for _ in range(num_policies)]
    observations = torch.rand(num_rows, width)
    policy_ids = np.random.default_rng(0).integers(0, num_policies, num_rows).astype(np.int32)
    num_threads = torch.get_num_threads()
    torch.set_num_threads(1)  # waiting threads would count as processor time
    try:
        with torch.inference_mode():
            mixed, one = side_by_side(
                lambda: PolicyGroups(policy_ids).act(policies, observations),
                lambda: policies[0](observations),
                rounds=51,
            )
    finally:
        torch.set_num_threads(num_threads)
    what = "a batch of 4,096 rows, 8 policies mixed, torch 256 wide"
    report(what, "one policy for all rows", mixed / one, 1.1, 2)
