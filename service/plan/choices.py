"""What a request may ask of its profile, beyond what its words allow by themselves.

A request's choices and a profile come in; nothing comes out but a refusal that
says why the two do not go together. No picture is looked at.
"""

from dataclasses import fields

from service.errors import BadParameter
from service.plan.profiles import DynamicSizes, Profile
from service.types import Budget, Dtype, Layout, Order


def check(profile: Profile, dtype: Dtype, layout: Layout, order: Order, asked: Budget) -> None:
    """Raise BadParameter for a choice that this profile cannot serve."""
    if dtype not in profile.dtypes:
        raise BadParameter(
            f"dtype={dtype} cannot be: {profile.name} resizes in {profile.numerics}, whose values "
            f"are no bytes; take one of {', '.join(profile.dtypes)}"
        )
    if layout is not Layout.PATCHES and order is not Order.RASTER:
        raise BadParameter(f"order={order} is an order of patches, and layout={layout} has none")
    if isinstance(profile.sizes, DynamicSizes):
        return
    for field in fields(asked):
        if getattr(asked, field.name) is not None:
            raise BadParameter(
                f"{field.name} is not used by {profile.name}: its sizes follow the rule "
                f"{profile.sizes.rule}, not dynamic"
            )
