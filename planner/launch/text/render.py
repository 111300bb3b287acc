"""Fills in the templates of launch files."""

from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined

from planner.hardware.reading.escape import comment, markdown, shell_default


@cache
def _environment(package: str) -> Environment:
    # Scripts and Markdown, no HTML: a filter for each language escapes text.
    environment = Environment(  # noqa: S701
        loader=PackageLoader(package),
        undefined=StrictUndefined,
        trim_blocks=False,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        # ${#array[@]} is bash, no comment.
        comment_start_string="{##",
        comment_end_string="##}",
    )
    environment.filters |= {
        "comment": comment,
        "markdown": markdown,
        "shell_default": shell_default,
    }
    return environment


def render(template: str, /, package: str = __package__, **values: object) -> str:
    """Fill in a template.

    Args:
        template: Name of the template's file. [text]
        package: Package whose ``templates`` hold the file. [text]
        values: Values by name in the template. [-]
    """
    return _environment(package).get_template(template).render(**values)
