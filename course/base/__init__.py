"""What every room stands on: settings and their checks, files and their texts, streams, quick imports."""
