// Written by tools/messages.py.
import { learn } from "./texts.js";

learn({
  "A call needs your answer": "Ein Aufruf braucht eine Antwort",
  "A call waits for others": [
    "Ein Aufruf wartet auf andere",
    "{count} Aufrufe warten auf andere"
  ],
  "A call waits for your answer": [
    "Ein Aufruf wartet auf Antwort",
    "{count} Aufrufe warten auf Antwort"
  ],
  "Answer the waiting call": [
    "Wartenden Aufruf beantworten",
    "{count} wartende Aufrufe beantworten"
  ],
  "Apply": "Übernehmen",
  "Apply {count} change": [
    "{count} Änderung übernehmen",
    "{count} Änderungen übernehmen"
  ],
  "Code of the tool": "Code des Werkzeugs",
  "Confirm first that you reviewed it.": "Zuerst die Prüfung bestätigen.",
  "Connecting… This may take up to half a minute.": "Verbindung wird aufgebaut… Das kann bis zu einer halben Minute dauern.",
  "Copied": "Kopiert",
  "Copy": "Kopieren",
  "Copy code": "Code kopieren",
  "Hide password": "Passwort verbergen",
  "It broke off. Try again.": "Abgebrochen. Noch einmal versuchen.",
  "It has changed since you chose. Your changes of it were taken back.": "Es hat sich seit der Auswahl geändert. Die Änderungen daran wurden zurückgenommen.",
  "List these {many} to answer": "Diese {many} zum Beantworten auflisten",
  "Move the pointer away from the button and back, then press.": "Den Zeiger von der Schaltfläche weg und wieder zurück bewegen, dann drücken.",
  "No changes.": "Keine Änderungen.",
  "Not all of it has been in view yet.": "Noch war nicht alles zu sehen.",
  "Nothing was applied, and your changes are kept here.": "Es wurde nichts übernommen; die Änderungen sind hier aufbewahrt.",
  "Nothing was pasted: the text has {count} characters, and this field takes {most} in all.": "Nichts wurde eingefügt: Der Text hat {count} Zeichen, dieses Feld fasst insgesamt {most}.",
  "Nothing was sent. Reload the page, then answer again.": "Nichts wurde gesendet. Bitte die Seite neu laden und dann noch einmal antworten.",
  "Nothing wrong": "Nichts zu beanstanden",
  "Notify me": "Im Browser melden",
  "Notify me while no page of hitlchat is in front": "Benachrichtigen, solange keine Seite von hitlchat vorn ist",
  "Notifying you": "Meldet im Browser",
  "Only calls of the same tool, as those that are selected.": "Nur Aufrufe desselben Werkzeugs wie die ausgewählten.",
  "Save first: the test runs the saved code.": "Zuerst speichern: Der Test läuft mit dem gespeicherten Code.",
  "Select one more to answer together": "Noch einen auswählen, um zusammen zu antworten",
  "Selected: press Ctrl+C": "Ausgewählt: Strg+C drücken",
  "Show in a window": "Als Fenster zeigen",
  "Show in the transcript": "Im Gesprächsverlauf zeigen",
  "Show password": "Passwort anzeigen",
  "Show what waits for others": "Zeigen, was auf andere wartet",
  "The answer is complete.": "Die Antwort ist vollständig.",
  "The answer is complete: {text}": "Die Antwort ist vollständig: {text}",
  "The connection fails each time right after it was made, so this page has stopped trying. Reload the page. If that does not help, tell whoever runs this server.": "Die Verbindung bricht jedes Mal gleich nach dem Aufbau ab, deshalb versucht diese Seite es nicht mehr. Bitte die Seite neu laden. Wenn das nicht hilft, bitte denen Bescheid geben, die diesen Server betreiben.",
  "The message that you were editing was changed elsewhere. Your words are in the box below.": "Die Nachricht, die hier bearbeitet wurde, ist anderswo geändert worden. Der Text steht unten im Eingabefeld.",
  "The run failed. {why}": "Der Lauf ist fehlgeschlagen. {why}",
  "The run was stopped.": "Der Lauf wurde angehalten.",
  "The server cannot be reached.": "Der Server ist nicht erreichbar.",
  "The server cannot be reached. Try again.": "Der Server ist nicht erreichbar. Noch einmal versuchen.",
  "The server did not accept this.": "Der Server hat dies nicht angenommen.",
  "The server did not answer. Try again.": "Der Server hat nicht geantwortet. Noch einmal versuchen.",
  "The server took too long.": "Der Server hat zu lange gebraucht.",
  "The text has {count} characters, and a message takes {most}: it is attached as a file.": "Der Text hat {count} Zeichen, eine Nachricht fasst {most}: Er ist als Datei angehängt.",
  "This browser blocks notifications of this page. Allow them in its settings for the page.": "Dieser Browser blockiert Benachrichtigungen dieser Seite. Sie lassen sich in seinen Einstellungen für die Seite erlauben.",
  "Turn notifications off": "Benachrichtigungen ausschalten",
  "Unfold everything first.": "Zuerst alles ausklappen.",
  "Verifying…": "Wird geprüft…",
  "Wait two seconds, then tap once.": "Zwei Sekunden warten, dann einmal tippen.",
  "What you send now waits until this is finished.": "Was jetzt gesendet wird, wartet, bis dies fertig ist.",
  "What you sent last may not have arrived. Look whether it did when the connection is back, and send it again if not.": "Das zuletzt Gesendete ist vielleicht nicht angekommen. Bitte nachsehen, sobald die Verbindung wieder steht, und es sonst noch einmal senden.",
  "Wrap": "Umbrechen",
  "Wrap long lines": "Lange Zeilen umbrechen",
  "You are not signed in any more: do that in another tab.": "Die Anmeldung ist abgelaufen: bitte in einem anderen Tab anmelden.",
  "You are notified of new calls while no page of hitlchat is in front.": "Neue Aufrufe werden gemeldet, solange keine Seite von hitlchat vorn ist.",
  "You typed a moment ago. Wait a second, then press the key again.": "Eben wurde noch geschrieben. Eine Sekunde warten, dann die Taste noch einmal drücken.",
  "Your answer ({verdict}) is kept, and sent when the connection is back.": "Die Antwort ({verdict}) ist aufbewahrt und wird gesendet, sobald die Verbindung steht.",
  "Your answer may not have arrived. If this card is still here when the connection is back, answer again.": "Die Antwort ist vielleicht nicht angekommen. Wenn diese Karte noch da ist, sobald die Verbindung wieder steht, bitte noch einmal antworten.",
  "approve": "genehmigen",
  "decline": "ablehnen",
  "going": "entfällt",
  "hitlchat itself did not answer as expected. Reload the page and try again.": "hitlchat selbst hat nicht wie erwartet geantwortet. Die Seite neu laden und noch einmal versuchen.",
  "not saved": "nicht gespeichert",
  "{count} argument not seen yet.": [
    "{count} Argument noch nicht gesehen.",
    "{count} Argumente noch nicht gesehen."
  ],
  "{count} change would be lost. Nothing of it was applied.": [
    "{count} Änderung ginge verloren. Nichts davon wurde übernommen.",
    "{count} Änderungen gingen verloren. Nichts davon wurde übernommen."
  ],
  "{count} change, not saved.": [
    "{count} Änderung, nicht gespeichert.",
    "{count} Änderungen, nicht gespeichert."
  ],
  "{count} finding": [
    "{count} Befund",
    "{count} Befunde"
  ],
  "{count} found": [
    "{count} gefunden",
    "{count} gefunden"
  ],
  "{count} tool no longer selected.": [
    "{count} Werkzeug nicht mehr ausgewählt.",
    "{count} Werkzeuge nicht mehr ausgewählt."
  ],
  "{count} tool selected.": [
    "{count} Werkzeug ausgewählt.",
    "{count} Werkzeuge ausgewählt."
  ],
  "{done} of {all} batches and calls": "{done} von {all} Stapeln und Aufrufen",
  "{left} of {all}": "{left} von {all}",
  "{many} selected": "{many} ausgewählt",
  "{more} more": "{more} weitere",
  "{number} of {all}": "{number} von {all}",
  "{open} calls need your answer": "{open} Aufrufe brauchen eine Antwort",
  "{tool} and {count} other tool": [
    "{tool} und {count} anderes Werkzeug",
    "{tool} und {count} andere Werkzeuge"
  ]
});
