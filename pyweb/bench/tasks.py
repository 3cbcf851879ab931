"""Short tasks that are answered from a text, as questions about a page are: some repeat it, some retell it."""

from collections.abc import Iterable
from dataclasses import dataclass

from pyweb.errors import UsageError

__all__ = ["TASKS", "Task", "tasks_of"]


@dataclass(frozen=True)
class Task:
    """An instruction about a text."""

    id: str
    instruction: str
    page: str = ""


def tasks_of(rows: Iterable[object]) -> list[Task]:
    """Tasks as their JSON rows describe them: `id`, `instruction` and `page`; further keys don't matter.

    Raises:
        UsageError: a row lacks its instruction, two have one id, or there is no row.
    """
    found: dict[str, Task] = {}
    for number, row in enumerate(rows, 1):
        if not isinstance(row, dict) or not isinstance(row.get("instruction"), str):
            raise UsageError(f"Prompt {number} has no instruction.", "Give rows of id, instruction and page.")
        name = str(row.get("id", number))
        if name in found:
            raise UsageError(f"Two prompts have the id {name:.40}.", "Give each its own.")
        found[name] = Task(name, row["instruction"], str(row.get("page") or ""))
    if not found:
        raise UsageError("There is no prompt.", "Give rows of id, instruction and page.")
    return list(found.values())


_REPAIR = """\
The bridge over the Aller was closed on the second of March. Divers had found that two of its five piers stood on
sand, which the winter floods had washed out to a depth of three metres. The council first thought of a new bridge,
for which the engineers asked eleven million. In the end it chose to repair the old one: the piers were cased in
concrete, the holes filled with stones from the quarry at Rehem, and the deck was raised by the width of a hand. Ferries
carried people across while the work went on. The bridge opened again on the last day of August, three weeks early,
and has a plate with the names of all who worked on it."""

_ORCHARD = """\
The orchard was planted by four families. Marta Lindqvist brought pears from the coast and grafted them herself. Jonas
Abel took care of the plums, which he dried and sold in the town. The cherries belonged to Ines Falk, whose
grandmother had kept the same sorts. Piet Oosterhuis came last and asked for the strip along the wall, where he grew
figs that nobody believed in. In the third year the figs bore fruit. Since then the families meet there every
September, and whoever comes by gets a basket."""

_FERRIES = """\
Line | From | To | Departure | Arrival | Price
1 | North Pier | Sandray | 07:30 | 08:10 | 4.20
1 | North Pier | Sandray | 09:15 | 09:55 | 4.20
2 | North Pier | Lunga | 08:00 | 09:20 | 6.80
2 | Lunga | Sandray | 09:40 | 10:05 | 2.50
3 | South Pier | Holm | 10:30 | 10:50 | 1.90
3 | Holm | South Pier | 11:00 | 11:20 | 1.90"""

_CLOCK = """\
def next_alarm(alarms, now):
    # The first alarm that is still to come today, or the first of tomorrow.
    later = [alarm for alarm in sorted(alarms) if alarm > now]
    if later:
        return later[0]
    return min(alarms) + 24 * 60


def minutes_until(alarms, now):
    return next_alarm(alarms, now) - now"""

_BREAD = """\
For two loaves take 900 grams of flour, 600 grams of water, 20 grams of salt and 150 grams of sourdough. Mix flour and
water and let them rest for half an hour. Add salt and sourdough and knead for ten minutes. Leave the dough in a warm
place for four hours and fold it once an hour. Shape two loaves, dust them with flour and put them into the
refrigerator over night. Heat the oven to 250 degrees. Bake for 20 minutes with the lid on and for 25 minutes at 220
degrees without it."""

TASKS = (
    Task("quote", "Quote the sentences that say how the bridge was repaired and when it opened again.", _REPAIR),
    Task("names", "List the people in the order in which they are named, with what each of them grew.", _ORCHARD),
    Task("table", "Repeat the table as CSV with a comma between the columns.", _FERRIES),
    Task("code", "Write the code again with the function next_alarm renamed to upcoming_alarm.", _CLOCK),
    Task("steps", "Give the recipe as a numbered list, one step a line, with all amounts and times.", _BREAD),
    Task("summary", "Say in three sentences of your own what happened to the bridge.", _REPAIR),
)
