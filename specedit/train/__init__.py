"""What drafting learns from beforehand: real edits and real code, from releases of permissively licensed packages."""
