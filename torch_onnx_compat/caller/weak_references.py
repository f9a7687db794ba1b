"""Weak references of a twin: to the copy of what the model's refer to, as a child's to its parent."""

from __future__ import annotations

import copy
import weakref
from typing import Any

from torch_onnx_compat.caller.copiers import CopyAnew

_KEY: Any = "torch_onnx_compat.caller.weak_references"
"""Under which the memo of a deepcopy has its WeakReferences; the memos of others have none."""


class WeakReferences:
    """Tells which referents are parts of the model.

    deepcopy meets a reference before or after what it refers to. One that is met before is taken for one to something
    outside of the model; if it is none, the copy begins anew.
    """

    def __init__(self) -> None:
        self._parts: dict[int, Any] = {}
        self._outside: dict[int, Any] = {}

    def put_into(self, memo: dict[int, Any]) -> None:
        """Lets a deepcopy with this memo copy references so."""
        memo[_KEY] = self

    def referent(self, value: Any, memo: dict[int, Any]) -> Any:
        """What the twin's reference is to."""
        if id(value) in memo or id(value) in self._parts:
            return copy.deepcopy(value, memo)
        self._outside[id(value)] = value
        return value

    def check(self, memo: dict[int, Any]) -> None:
        """Looks whether what seemed to be outside was copied later.

        Raises:
            CopyAnew: It was.
        """
        found = {key: value for key, value in self._outside.items() if memo.get(key, value) is not value}
        self._outside.clear()
        if found:
            self._parts.update(found)
            raise CopyAnew


def _referent(value: Any, memo: dict[int, Any]) -> Any:
    references = memo.get(_KEY)
    return value if references is None or value is None else references.referent(value, memo)


def _copy_reference(reference: weakref.ref[Any], memo: dict[int, Any]) -> Any:
    value = reference()
    new = _referent(value, memo)
    return reference if new is value else weakref.ref(new)


def _copy_proxy(proxy: Any, memo: dict[int, Any]) -> Any:
    try:
        value = proxy.__repr__.__self__  # a proxy passes on what it is asked for
    except ReferenceError:  # there is nothing behind it any more
        return proxy
    new = _referent(value, memo)
    return proxy if new is value else weakref.proxy(new)


def _copy_method(method: weakref.WeakMethod[Any], memo: dict[int, Any]) -> Any:
    bound = method()
    new = None if bound is None else _referent(bound.__self__, memo)
    return method if bound is None or new is bound.__self__ else weakref.WeakMethod(getattr(new, bound.__name__))


def _copy_table_of_values(table: Any, memo: dict[int, Any]) -> Any:
    return type(table)({copy.deepcopy(key, memo): _referent(value, memo) for key, value in table.items()})


def _copy_table_of_keys(table: Any, memo: dict[int, Any]) -> Any:
    return type(table)({_referent(key, memo): copy.deepcopy(value, memo) for key, value in table.items()})


def _copy_set(values: Any, memo: dict[int, Any]) -> Any:
    return type(values)([_referent(value, memo) for value in values])


COPIERS: dict[type, Any] = {
    weakref.ref: _copy_reference,
    weakref.ProxyType: _copy_proxy,
    weakref.CallableProxyType: _copy_proxy,
    weakref.WeakMethod: _copy_method,
    weakref.WeakValueDictionary: _copy_table_of_values,
    weakref.WeakKeyDictionary: _copy_table_of_keys,
    weakref.WeakSet: _copy_set,
}
"""What deepcopy is to call, by class."""
