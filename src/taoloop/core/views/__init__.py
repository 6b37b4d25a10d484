"""Views of a trace for people: steps, summaries, transcripts, differences, exports."""
