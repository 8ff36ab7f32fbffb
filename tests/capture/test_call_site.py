import inspect
import weakref

import pytest
import torch
from torch import nn

from regard.capture.call_site import ModuleNames


def find_in_function(module, names):
    return names.find_call_site()


class Inner(nn.Module):
    def forward(self, names):
        return names.find_call_site()


class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Inner(), Inner()])

    def forward(self, names, case):
        if case == "submodule":
            return self.layers[1](names)
        if case == "function":
            return find_in_function(self, names)
        if case == "function of submodule":
            return find_in_function(self.layers[0], names)
        return (lambda names: names.find_call_site())(names)


def location_of(function, text):
    lines, first = inspect.getsourcelines(function)
    line = first + next(n for n, line in enumerate(lines) if text in line)
    return f"test_call_site.py:{line}"


def test_site_is_the_calling_module_and_its_line():
    model = Outer()
    site = model(ModuleNames(model), "submodule")
    assert site.module_name == "layers.1" and site.module is model.layers[1]
    assert site.location == location_of(Inner.forward, "find_call_site")


def test_line_is_in_the_method_rather_than_in_a_function_it_calls():
    model = Outer()
    site = model(ModuleNames(model), "function")
    assert site.module_name == "Outer"
    assert site.location == location_of(Outer.forward, "find_in_function(self, names)")


def test_function_that_receives_a_module_is_attributed_to_it():
    model = Outer()
    site = model(ModuleNames(model), "function of submodule")
    assert site.module_name == "layers.0"
    assert site.location == location_of(find_in_function, "find_call_site")


def test_lambda_inside_a_method_is_attributed_to_the_module():
    model = Outer()
    assert model(ModuleNames(model), "lambda").module_name == "Outer"


def test_call_outside_the_model_has_no_site():
    model = Outer()
    assert ModuleNames(model).find_call_site() is None
    assert Outer()(ModuleNames(model), "submodule") is None


def test_walking_the_stack_keeps_no_tensors_alive():
    class Reassigns(nn.Module):
        def forward(self, names):
            rows = torch.randn(3)
            before = weakref.ref(rows)
            names.find_call_site()
            rows = rows + 1
            return before() is None, rows is not None

    model = Reassigns()
    assert model(ModuleNames(model)) == (True, True)


class HoldsLocals(nn.Module):
    """Holds its own locals() dict, with one entry that it added."""

    def forward(self, names, number=1):
        variables = locals()
        variables["added"] = 5
        number = number + 1
        site = names.find_call_site()
        return site, variables["number"], variables["added"], number


@pytest.mark.parametrize("hooked", [False, True])
def test_function_that_holds_its_locals_finds_them_unchanged(hooked):
    model = nn.ModuleList([HoldsLocals()])
    if hooked:
        model[0].register_forward_hook(lambda *_: None)
    site, *numbers = model[0](ModuleNames(model))
    assert numbers == [1, 5, 2]
    assert site.module_name == "0"
    assert site.location == location_of(HoldsLocals.forward, "find_call_site")


def test_wrappers_are_left_out_of_names():
    class Parallel(nn.Module):
        def __init__(self, module):
            super().__init__()
            self.module = module

    model = Outer()
    assert "layers.1" in ModuleNames(torch.compile(model, backend="eager")).all()
    assert "layers.1" in ModuleNames(Parallel(model)).all()


def test_patterns_match_names():
    names = ModuleNames(Outer())
    assert names.any_match("layers.*") and names.any_match("Outer")
    assert not names.any_match("decoder.*")


class FindsModelCall(nn.Module):
    def forward(self, names):
        return names.find_model_call()

    def twice(self, names):
        return self(names), self(names)


def test_calls_of_a_model_are_distinguished():
    model = FindsModelCall()
    names = ModuleNames(model)
    first, second = (model(names) for _ in range(2))
    assert first.is_same(first) and not first.is_same(second)
    first, second = model.twice(names)
    assert first.is_same(second)
    assert ModuleNames(FindsModelCall()).find_model_call() is None
