"""How a run ended, in words."""

from linkwright.results.status import Counters, Status


def test_a_status_is_true_when_the_run_finished() -> None:
    assert Status(ok=True)
    assert not Status(ok=False, reason="lock-up")


def test_a_status_reads_as_sentences_with_its_notes_and_advice() -> None:
    status = Status(
        ok=False,
        message="the driver 'motor' cannot go on at t = 0.25 s",
        reason="dead centre",
        notes=("passed a singular position at t = 0.1 s",),
        advice="shorten the coupler",
    )
    assert str(status) == (
        "the driver 'motor' cannot go on at t = 0.25 s. Passed a singular position at t = 0.1 s. Shorten the coupler."
    )


def test_a_status_without_message_tells_what_it_carries() -> None:
    assert str(Status(ok=False, reason="lock-up", time=0.25, element="motor")) == (
        "stopped at t = 0.25 s: lock-up at 'motor'."
    )
    assert str(Status(ok=True)) == "finished."


def test_counters_read_as_a_list_with_singulars() -> None:
    assert str(Counters(newton_iterations=1234, points=1)) == (
        "1 point, 1,234 Newton iterations, 0 function evaluations, 0 linear solves, 0 substeps"
    )
