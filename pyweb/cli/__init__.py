"""The command line: set-up, local server, headless browser, and the commands over them."""
