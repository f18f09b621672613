"""Angles: trigonometric functions of radians and of degrees, and hyperbolic functions."""

from __future__ import annotations

from collections.abc import Sequence

from halfjoin.sql.functions.signature import Function, function

_RANGE = "ERROR: input is out of range"


def _of(name: str, doc: str, *examples: tuple[str, str], arity: int = 1, fails: bool = False) -> Function:
    params = ", ".join(["double precision"] * arity)
    result = "double precision or error" if fails else "double precision"
    return function(name, "mathematics", doc, f"{params} -> {result}", examples=list(examples))


def _periodic(name: str, doc: str, unit: str, *examples: tuple[str, str]) -> Function:
    infinite: Sequence[tuple[str, str]] = [(f"{name}('Infinity')", _RANGE)]
    return _of(name, f"{doc} of an angle in {unit}", *examples, *infinite, fails=True)


TRIGONOMETRY = (
    _periodic("sin", "Sine", "radians", ("sin(1)", "0.8414709848078965")),
    _periodic("cos", "Cosine", "radians", ("cos(1)", "0.5403023058681398")),
    _periodic("tan", "Tangent", "radians", ("tan(1)", "1.5574077246549023")),
    _periodic("cot", "Cotangent", "radians", ("cot(1)", "0.6420926159343306"), ("cot(0)", "Infinity")),
    _of("asin", "Angle in radians of a sine", ("asin(0.5)", "0.5235987755982989"), ("asin(2)", _RANGE), fails=True),
    _of("acos", "Angle in radians of a cosine", ("acos(0.5)", "1.0471975511965979"), ("acos(2)", _RANGE), fails=True),
    _of("atan", "Angle in radians of a tangent", ("atan(1)", "0.7853981633974483")),
    _of("atan2", "Angle in radians of y / x", ("atan2(1, -2)", "2.677945044588987"), arity=2),
    _periodic("sind", "Sine", "degrees", ("sind(30)", "0.5"), ("sind(100)", "0.984807753012208")),
    _periodic("cosd", "Cosine", "degrees", ("cosd(60)", "0.5"), ("cosd(-100)", "-0.17364817766693036")),
    _periodic("tand", "Tangent", "degrees", ("tand(45)", "1"), ("tand(90)", "Infinity"),
              ("tand(135)", "-1")),
    _periodic("cotd", "Cotangent", "degrees", ("cotd(45)", "1"), ("cotd(90)", "0"), ("cotd(0)", "Infinity")),
    _of("asind", "Angle in degrees of a sine", ("asind(0.5)", "30"), ("asind(2)", _RANGE), fails=True),
    _of("acosd", "Angle in degrees of a cosine", ("acosd(-0.5)", "120"), ("acosd(2)", _RANGE), fails=True),
    _of("atand", "Angle in degrees of a tangent", ("atand(-1)", "-45")),
    _of("atan2d", "Angle in degrees of y / x", ("atan2d(1, 1)", "45"), arity=2),
    _of("sinh", "Hyperbolic sine", ("sinh(1)", "1.1752011936438014"), ("sinh(-1000)", "-Infinity")),
    _of("cosh", "Hyperbolic cosine", ("cosh(1)", "1.5430806348152437"), ("cosh(1000)", "Infinity")),
    _of("tanh", "Hyperbolic tangent", ("tanh(1)", "0.7615941559557649")),
    _of("asinh", "Inverse hyperbolic sine", ("asinh(1)", "0.881373587019543")),
    _of("acosh", "Inverse hyperbolic cosine", ("acosh(2)", "1.3169578969248166"), ("acosh(0.5)", _RANGE), fails=True),
    _of("atanh", "Inverse hyperbolic tangent", ("atanh(0.5)", "0.5493061443340548"), ("atanh(1)", "Infinity"),
        ("atanh(2)", _RANGE), fails=True),
    _of("degrees", "From radians to degrees", ("degrees(0.5)", "28.64788975654116"),
        ("degrees(1e308)", "ERROR: value out of range: overflow"), fails=True),
    _of("radians", "From degrees to radians", ("radians(45)", "0.7853981633974483"), fails=True),
    _of("pi", "The number pi", ("pi()", "3.141592653589793"), arity=0),
)  # fmt: skip
