"""Questions with passages that answer them, in English and Dutch, of the kinds that the demo's documents are: for every
site the same, so that its own documents alone do not decide."""

from __future__ import annotations

SHIPPED: tuple[tuple[str, str, str], ...] = (
    (
        "Can I use this without an internet connection?",
        "Running offline",
        "The embedded database and the extractive answerer need no connection and no key. Only a language "
        "model behind an address of your own needs a network.",
    ),
    (
        "How long is the warranty on a wet-rotor pump?",
        "Warranty periods",
        "Wet-rotor pumps are covered for two years from the date of the invoice. The period becomes five "
        "years when the commissioning card is sent in within thirty days.",
    ),
    (
        "What happens to a document that could not be read?",
        "When reading fails",
        "A document that could not be read is tried again with growing pauses. After the fifth attempt it is "
        "marked as failed, and the list names the reason.",
    ),
    (
        "How can I close the chat to visitors without an account?",
        "Who may ask",
        "Set the option that requires a login, and visitors without an account are sent to the sign-in page. "
        "What they asked before stays with their browser.",
    ),
    (
        "The pump hums but the shaft is stuck after the summer, what can I do?",
        "After a long standstill",
        "Turn the shaft with a screwdriver a few times in both directions. If it stays stuck, take the motor "
        "off and clean the rotor.",
    ),
    (
        "How much does the one-day installer course cost?",
        "Training",
        "The course for installers takes one day and costs 195 euro a person, lunch included. It is given in "
        "March and in October.",
    ),
    (
        "Why does the language have no endless loops?",
        "Loops",
        "A loop counts from one number to another and cannot be changed while it runs. Every program "
        "therefore comes to an end.",
    ),
    (
        "Does deleting a variable fail when it is not there?",
        "Deleting variables",
        "Deleting a variable that does not exist is not an error. The function returns false in that case.",
    ),
    (
        "Who approves travel expenses above the limit?",
        "Travel",
        "Expenses up to 250 euro are approved by the team lead. Above that limit the head of finance approves"
        " them before the trip is booked.",
    ),
    (
        "How do I restore a backup on another machine?",
        "Moving to another machine",
        "Install the same version, stop all processes and run the restore command with the archive. Then "
        "apply the migrations and start the site.",
    ),
    (
        "How many days of parental leave do I get?",
        "Leave",
        "Parents may take 26 weeks until the child is eight years old, nine of them paid at seventy per cent."
        " Ask for it two months before it begins.",
    ),
    (
        "Which temperature is needed to store the vaccine?",
        "Storage",
        "The vaccine is kept between two and eight degrees and must not be frozen. A vial that was opened is "
        "used within six hours.",
    ),
    (
        "How do I report a data breach?",
        "Incidents",
        "Tell the privacy officer at once, also at night, and write down what was seen and when. She decides "
        "whether the authority has to be told within 72 hours.",
    ),
    (
        "What does error E-041 on the display mean?",
        "Error codes",
        "E-041 stands for dry running: the pump stopped because there is no water in it. Vent the system and "
        "press the button for three seconds.",
    ),
    (
        "Wat zijn de bezoekuren op de afdeling cardiologie?",
        "Bezoektijden",
        "Op de afdeling cardiologie kunt u op bezoek komen van 14.00 tot 16.00 uur en van 18.30 tot 20.00 "
        "uur. Kom met ten hoogste twee personen tegelijk.",
    ),
    (
        "Mag ik bloemen meenemen naar de hartbewaking?",
        "Bloemen",
        "Bloemen en planten zijn niet toegestaan op de hartbewaking. Op de andere afdelingen staan vazen in de gang.",
    ),
    (
        "Wat kost het als ik vergeet een afspraak af te zeggen?",
        "Afspraak afzeggen",
        "Zegt u een afspraak later dan 24 uur van tevoren af, dan brengen wij 45 euro in rekening. Uw "
        "verzekering vergoedt dat bedrag niet.",
    ),
    (
        "Kan ik een factuur in termijnen betalen?",
        "Betalen",
        "Een betalingsregeling is mogelijk in ten hoogste tien maandelijkse termijnen. Vraag haar aan voordat"
        " de factuur verloopt.",
    ),
    (
        "Kan ik bij mijn kind blijven slapen?",
        "Overnachten",
        "Naast elk bed staat een slaapbank, zodat één ouder kan blijven overnachten. Een ontbijt krijgt u op "
        "de afdeling.",
    ),
    (
        "Welke bus rijdt er naar het ziekenhuis?",
        "Openbaar vervoer",
        "Bus 14 stopt elk kwartier voor de hoofdingang. In het weekend rijdt hij om het half uur.",
    ),
)
