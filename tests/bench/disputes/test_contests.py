"""The page shows what the contests give, and the figure is of the same numbers."""

from tests.bench.disputes import contests


def test_job_26__the_table_shows_what_the_job_machine_does() -> None:
    text = contests.PAGE.read_text()
    assert len(contests.BLOCK.findall(text)) == 1
    shown = text.splitlines()
    few = tuple(n for n in contests.CLAIMS if n <= 16)
    missing = [line for line in contests.lines(few) if line not in shown]
    assert not missing, "run python -m tests.bench.disputes.contests"


def test_job_26__every_number_of_liars_of_the_table_is_within_the_bound() -> None:
    table = contests.BLOCK.search(contests.PAGE.read_text())
    assert table is not None
    rows = [line.split("|") for line in table["body"].splitlines() if line[2:3].isdigit()]
    assert [int(row[1]) for row in rows] == list(contests.CLAIMS)
    for row in rows:
        assert int(row[2]) == contests.bound(int(row[1]))
        assert all(float(time) <= int(row[2]) for time in row[3:6])
    assert contests.FIGURE.read_text().count("<path") > 10
