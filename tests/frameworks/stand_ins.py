"""Stands in for packages that a framework imports and that its parser does not need, PyTorch above all.

A stand-in module has every attribute: a class that can be a base class, a decorator, a type in an annotation or a
function, and whose attributes are such classes as well.
"""
import importlib.abc
import importlib.machinery
import sys
import types
import typing


# Protocols and abstract classes are bases beside torch.nn.Module; their metaclass has to be an ancestor.
class StandInType(type(typing.Protocol)):
    def __getattr__(cls, name):
        if not _stands_in(cls) or name.startswith("__"):
            raise AttributeError(name)
        setattr(cls, name, _new_class(name))
        return getattr(cls, name)

    def __call__(cls, *arguments, **named):
        if not _stands_in(cls):
            return super().__call__(*arguments, **named)
        decorates = len(arguments) == 1 and isinstance(arguments[0], type)
        return arguments[0] if decorates else _new_class(cls.__name__)

    def __getitem__(cls, key):
        return cls

    def __iter__(cls):
        return iter(())

    def __bool__(cls):
        return not _stands_in(cls)


def _stands_in(cls):
    return "is_stand_in" in cls.__dict__


def _new_class(name):
    members = {"is_stand_in": True, "__init__": lambda self, *arguments, **named: None}
    return StandInType(name, (), members)


class StandInModule(types.ModuleType):
    __path__ = []
    __version__ = "99.0"

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        setattr(self, name, _new_class(name))
        return getattr(self, name)


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, packages):
        self.packages = packages

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in self.packages:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        return StandInModule(spec.name)

    def exec_module(self, module):
        pass


def install(*packages):
    """Makes imports of these packages and of all modules in them return stand-ins."""
    sys.meta_path.insert(0, _Finder(packages))


def install_torch(version):
    """A stand-in of PyTorch, whose number formats are values of one type."""
    install("torch", "triton", "numpy")
    import torch

    torch.__version__ = version
    torch.dtype = type("dtype", (), {})
    for name in ("float", "half", "float32", "float16", "bfloat16", "uint8", "int32", "int64"):
        setattr(torch, name, torch.dtype())
    return torch
