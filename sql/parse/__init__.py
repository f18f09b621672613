"""From SQL text to sqlglot's syntax trees and to statements."""
