"""One chart a file; each takes figures of the report and gives inline SVG."""
