import pickle
import warnings

import pytest

from imcc._utils.errors import ImccError, InvalidArgumentError, Message, given, message_of, named


def as_option(argument):
    return f"--{argument.name}"


def test_a_message_is_text_and_remembers_its_arguments():
    message = f"{3} columns; say which with " + given("labels", [1, 2]) + " or " + given("format")
    assert message == "3 columns; say which with labels=[1, 2] or format="
    assert message.render(as_option) == "3 columns; say which with --labels or --format"
    assert ("file: " + message).render(as_option).startswith("file: 3 columns")


def test_text_that_looks_like_an_argument_is_left_alone():
    message = "the column 'labels=' is empty; see " + given("labels")
    assert message.render(as_option) == "the column 'labels=' is empty; see --labels"


@pytest.mark.parametrize("value", [True, 0, "one"])
def test_the_value_is_pythons(value):
    assert str(given("header", value)) == f"header={value!r}"


def test_an_error_and_a_warning_keep_their_arguments():
    error = FileExistsError("it already exists; " + given("overwrite", True))
    assert message_of(error).render(as_option) == "it already exists; --overwrite"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.warn("guessed; " + given("encoding"), stacklevel=1)
    assert message_of(caught[0].message).render(as_option) == "guessed; --encoding"
    assert message_of(KeyError("a")) == "'a'"


def test_an_invalid_argument_is_a_value_error_with_its_name():
    error = InvalidArgumentError("alpha", "must be > 0; see " + given("beta"))
    assert isinstance(error, ValueError)
    assert isinstance(error, ImccError)
    assert error.argument == "alpha"
    assert str(error) == "alpha must be > 0; see beta="
    assert message_of(error).render(as_option) == "--alpha must be > 0; see --beta"


def test_they_travel_between_processes():
    error = pickle.loads(pickle.dumps(InvalidArgumentError("alpha", "must be > 0" + named("b"))))
    assert (error.argument, str(error)) == ("alpha", "alpha must be > 0b")
    assert message_of(error).render(as_option) == "--alpha must be > 0--b"
    message = pickle.loads(pickle.dumps(Message("a ", given("b", 1))))
    assert message.render(as_option) == "a --b"
