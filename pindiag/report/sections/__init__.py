"""What each section of the page shows: one module a section, named as its template."""
