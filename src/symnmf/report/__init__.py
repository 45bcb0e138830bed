"""One HTML page about a finished clustering: pictures, certificate, and tables to search.

The page is a single file that fetches nothing. Every string that comes from data is escaped, and
a content security policy lets only the page's own script run (by its hash), so a node whose name
is a script tag is shown as text.
"""

from symnmf.report.page import write_report

__all__ = ["write_report"]
