"""Turn journals and lakes into text, JUnit XML and HTML pages."""
