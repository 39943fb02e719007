"""Output for the user: web pages, pictures, tables and progress on a terminal."""
