"""SQL text to sqlglot's trees and to statements."""
