"""How the outside spells things: `parse_…` makes the model of it, `render_…` writes the model down."""
