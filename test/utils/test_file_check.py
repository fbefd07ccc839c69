"""torch.testing.FileCheck: what each kind of check accepts, and the words when it does not."""

import pytest

from torch.testing import FileCheck

TEXT = "one two\nthree\ntwo two\nfour"


def test_checks_are_met_in_order():
    FileCheck().check("one").check("two").check("four").run(TEXT)
    with pytest.raises(RuntimeError, match='Expected to find "one" but did not find it'):
        FileCheck().check("three").check("one").run(TEXT)


def test_not_looks_between_its_neighbours():
    FileCheck().check("one").check_not("four").check("three").run(TEXT)
    with pytest.raises(RuntimeError, match="~~~~~ <--- HERE"):
        FileCheck().check("one").check_not("three").check("four").run(TEXT)
    with pytest.raises(RuntimeError, match="From CHECK-NOT: four"):
        FileCheck().check("one").check_not("four").run(TEXT)


def test_same_and_next_count_lines():
    FileCheck().check("one").check_same("two").check_next("three").run(TEXT)
    with pytest.raises(RuntimeError, match="From CHECK-SAME: three"):
        FileCheck().check("one").check_same("three").run(TEXT)
    with pytest.raises(RuntimeError, match="From CHECK-NEXT: four"):
        FileCheck().check("one").check_next("four").run(TEXT)


def test_count_is_a_minimum_unless_exact():
    FileCheck().check_count("two", 2).run(TEXT)
    FileCheck().check_count("two", 3, exactly=True).run(TEXT)
    for count, exactly in ((4, False), (2, True)):
        with pytest.raises(RuntimeError, match='"two"'):
            FileCheck().check_count("two", count, exactly).run(TEXT)


def test_neighbouring_dag_checks_are_met_in_any_order():
    FileCheck().check_dag("three").check_dag("one").check("four").run(TEXT)
    with pytest.raises(RuntimeError, match='Expected to find "one"'):
        FileCheck().check_dag("three").check_not("x").check_dag("one").run(TEXT)


def test_regex_and_underlined_source():
    FileCheck().check_regex(r"t\w+ee").check("four").run(TEXT)
    marked = "x = 1 / 0\n    ~~~~~ <--- HERE"
    FileCheck().check_source_highlighted("1 / 0").run(marked)
    with pytest.raises(RuntimeError, match="highlighted"):
        FileCheck().check_source_highlighted("x = 1").run(marked)


def test_annotations_of_a_text_are_its_checks():
    FileCheck().run("# CHECK: one\n code # CHECK-NEXT: three\n# CHECK-COUNT-2: two", TEXT)
    with pytest.raises(RuntimeError, match="Could not parse check"):
        FileCheck().run("# CHECK-NEVER: one", TEXT)
    with pytest.raises(RuntimeError, match="No checks have been added"):
        FileCheck().run("nothing", TEXT)


def test_an_instance_that_was_never_run_says_so(capsys):
    FileCheck().check("a").check_not("b")
    said = capsys.readouterr().out
    assert said == (
        "You have not run this instance of FileCheck!\nFileCheck checks:\n"
        "\tCHECK: a\n\tCHECK-NOT: b\n"
    )


def test_what_is_refused_before_a_group_in_any_order_ends_at_its_first_match():
    check = FileCheck().check_not("3").check_dag("1").check_dag("2").check_not("3")
    check.run("1 3 2")
    check.run("2 3 1")
    for text in ("3 1 2", "2 1 3"):
        with pytest.raises(RuntimeError, match='Expected to not find "3"'):
            check.run(text)
