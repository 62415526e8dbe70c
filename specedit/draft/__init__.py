"""Drafting: draft trees and what proposes them. Knows token ids, no files and no torch."""
