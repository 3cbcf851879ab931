"""The languages whose frequent words tell text from furniture, where trafilatura falls back to jusText."""

__all__ = ["LANGUAGES"]

# jusText's lists of a hundred languages are 2.4 MB, most of it in a few that write whole phrases as one word. A page in
# a language that isn't here is read by our own walk where trafilatura's other ways fail.
LANGUAGES = (
    *("Catalan", "Czech", "Danish", "Dutch", "English", "French", "German", "Greek", "Hindi", "Indonesian", "Italian"),
    *("Malay", "Norwegian_Bokmal", "Persian", "Polish", "Portuguese", "Romanian", "Russian", "Spanish", "Swedish"),
    *("Turkish", "Vietnamese"),
)
