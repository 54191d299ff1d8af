from bench.tables.scoring import read_expected_tables, score_tables

PUMPS = [["Pump", "Power"], ["MX-1", "45 W"], ["MX-2", "185 W"], ["MX-3", "370 W"]]


def test_cells_are_counted_in_their_row_and_column(tmp_path):
    """A row that is missing costs its own cells; an unexpected table is false."""
    (tmp_path / "a.1.csv").write_text("\n".join(",".join(row) for row in PUMPS))
    expected = read_expected_tables(tmp_path / "a.pdf")
    score = score_tables("a", expected, [[["Name:", "Bos"]], [PUMPS[0], ["MX-1", "45W"], ["MX-3", ""]]])
    assert (score.expected, score.found, score.cells, score.right, score.false) == (1, 1, 8, 5, ("Name: | Bos",))
    assert read_expected_tables(tmp_path / "b.pdf") == []
