import inspect
import weakref

import pytest
import torch
from torch import nn

from regard.capture.call_site import Names


def helper(module, names):
    return names.site()


class Inner(nn.Module):
    def forward(self, names):
        return names.site()


class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Inner(), Inner()])

    def forward(self, names, way):
        if way == "inner":
            return self.layers[1](names)
        if way == "helper":
            return helper(self, names)
        if way == "handed on":
            return helper(self.layers[0], names)
        return (lambda names: names.site())(names)


def line_of(function, text):
    lines, first = inspect.getsourcelines(function)
    return first + next(n for n, line in enumerate(lines) if text in line)


def test_the_module_that_looked_is_named_with_its_line():
    model = Outer()
    site = model(Names(model), "inner")
    assert site.name == "layers.1" and site.module is model.layers[1]
    assert site.place == f"test_call_site.py:{line_of(Inner.forward, 'names.site')}"


def test_the_line_is_the_modules_own_not_that_of_a_function_it_calls():
    model = Outer()
    site = model(Names(model), "helper")
    assert site.name == "Outer"
    assert site.place == f"test_call_site.py:{line_of(Outer.forward, 'helper(self, names)')}"


def test_a_function_that_is_handed_a_module_speaks_for_it():
    model = Outer()
    site = model(Names(model), "handed on")
    assert site.name == "layers.0"
    assert site.place == f"test_call_site.py:{line_of(helper, 'names.site')}"


def test_a_function_inside_a_module_belongs_to_it():
    model = Outer()
    assert model(Names(model), "lambda").name == "Outer"


def test_calls_outside_the_model_have_no_site():
    model = Outer()
    assert Names(model).site() is None
    assert Outer()(Names(model), "inner") is None


def test_tensors_of_the_functions_on_the_way_are_not_kept_alive():
    class Changes(nn.Module):
        def forward(self, names):
            rows = torch.randn(3)
            before = weakref.ref(rows)
            names.site()
            rows = rows + 1
            return before() is None, rows is not None

    model = Changes()
    assert model(Names(model)) == (True, True)


class Borrows(nn.Module):
    """Holds the dict of its own variables, with one that it added."""

    def forward(self, names, number=1):
        given = locals()
        given["added"] = 5
        number = number + 1
        site = names.site()
        return site, given["number"], given["added"], number


@pytest.mark.parametrize("hooked", [False, True])
def test_a_function_that_holds_its_own_variables_finds_them_as_they_were(hooked):
    model = nn.ModuleList([Borrows()])
    if hooked:
        model[0].register_forward_hook(lambda *_: None)
    site, *numbers = model[0](Names(model))
    assert numbers == [1, 5, 2]
    assert site.name == "0"
    assert site.place == f"test_call_site.py:{line_of(Borrows.forward, 'names.site')}"


def test_what_wraps_a_model_is_left_out_of_names():
    model = Outer()
    compiled = torch.compile(model, backend="eager")
    assert "layers.1" in Names(compiled).all()

    class Parallel(nn.Module):
        def __init__(self, module):
            super().__init__()
            self.module = module

    assert "layers.1" in Names(Parallel(model)).all()


def test_patterns_fit_names():
    names = Names(Outer())
    assert names.match("layers.*") and names.match("Outer") and not names.match("decoder.*")


class Asks(nn.Module):
    def forward(self, names):
        return names.call()

    def twice(self, names):
        return self(names), self(names)


def test_calls_of_a_model_are_told_apart():
    model = Asks()
    names = Names(model)
    first, second = (model(names) for _ in range(2))
    assert first.is_also(first) and not first.is_also(second)
    one, other = model.twice(names)
    assert one.is_also(other)
    assert Names(Asks()).call() is None
