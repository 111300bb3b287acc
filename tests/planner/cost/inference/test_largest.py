"""The largest number that fits is found, whatever it is and wherever one begins."""

from hypothesis import given
from hypothesis import strategies as st

from planner.cost.inference.largest import largest


@given(
    answer=st.integers(0, 5000), most=st.integers(1, 5000), start=st.integers(1, 6000)
)
def test_doubling_and_halving_finds_the_edge(
    answer: int, most: int, start: int
) -> None:
    asked: list[int] = []

    def fits(number: int) -> bool:
        asked.append(number)
        return number <= answer

    assert largest(fits, most=most, start=start) == min(answer, most)
    assert all(1 <= number <= most for number in asked)
    assert len(asked) < 30


def test_a_start_near_the_answer_saves_questions() -> None:
    def questions(start: int) -> int:
        asked: list[int] = []
        largest(lambda n: asked.append(n) or n <= 4100, most=2**20, start=start)
        return len(asked)

    assert questions(4096) < questions(1)
