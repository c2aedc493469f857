// Written by tools/messages.py.
import { learn } from "./texts.js";

learn({
  "1 call waiting": [
    "1 Aufruf wartet",
    "{count} Aufrufe warten"
  ],
  "A call needs your answer": "Ein Aufruf braucht eine Antwort",
  "A call waits for others": [
    "Ein Aufruf wartet auf andere",
    "{count} Aufrufe warten auf andere"
  ],
  "A call waits for your answer": [
    "Ein Aufruf wartet auf Antwort",
    "{count} Aufrufe warten auf Antwort"
  ],
  "Apply": "Übernehmen",
  "Apply {count} change": [
    "{count} Änderung übernehmen",
    "{count} Änderungen übernehmen"
  ],
  "Code of the tool": "Code des Werkzeugs",
  "Connecting… This may take up to half a minute.": "Verbindung wird aufgebaut… Das kann bis zu einer halben Minute dauern.",
  "Copied": "Kopiert",
  "Copy": "Kopieren",
  "Copy code": "Code kopieren",
  "Fill in the value above first.": "Zuerst oben den Wert angeben.",
  "Hide password": "Passwort verbergen",
  "Messages you send now are queued until this run finishes.": "Nachrichten, die Sie jetzt senden, warten, bis dieser Lauf fertig ist.",
  "Move the pointer away from the button and back, then press.": "Den Zeiger von der Schaltfläche weg und wieder zurück bewegen, dann drücken.",
  "No changes.": "Keine Änderungen.",
  "No longer waiting: {title}. {fate}": "Wartet nicht mehr: {title}. {fate}",
  "No problems": "Nichts zu beanstanden",
  "Nothing was applied, and your changes are kept here.": "Es wurde nichts übernommen. Ihre Änderungen bleiben hier erhalten.",
  "Nothing was pasted: the text has {count} characters, and this field holds at most {most}.": "Nichts wurde eingefügt: Der Text hat {count} Zeichen, in dieses Feld passen höchstens {most}.",
  "Nothing was sent. Reload the page, then answer again.": "Nichts wurde gesendet. Bitte die Seite neu laden und dann noch einmal antworten.",
  "Notifications on": "Benachrichtigungen an",
  "Notify me": "Benachrichtigen",
  "Notify me when no hitlchat page is in front": "Benachrichtigen, solange keine Seite von hitlchat vorn ist",
  "Review {many}": "{many} ansehen",
  "Save first: the test runs the saved code.": "Zuerst speichern: Der Test läuft mit dem gespeicherten Code.",
  "Scroll through the whole card first.": "Zuerst durch die ganze Karte scrollen.",
  "Scroll to see {count} more argument.": [
    "{count} Argument noch nicht gesehen.",
    "{count} Argumente noch nicht gesehen."
  ],
  "Select another to answer them together": "Einen weiteren auswählen, um sie zusammen zu beantworten",
  "Select only calls to the same tool.": "Wählen Sie nur Aufrufe desselben Werkzeugs aus.",
  "Selected: press Ctrl+C": "Ausgewählt: Strg+C drücken",
  "Show in a window": "Als Fenster zeigen",
  "Show in the transcript": "Im Gesprächsverlauf zeigen",
  "Show password": "Passwort anzeigen",
  "The answer is complete.": "Die Antwort ist vollständig.",
  "The answer is complete: {text}": "Die Antwort ist vollständig: {text}",
  "The connection keeps failing, so this page has stopped trying. Reload the page. If that does not help, tell whoever runs this server.": "Die Verbindung bricht immer wieder ab, deshalb versucht diese Seite es nicht mehr. Bitte die Seite neu laden. Wenn das nicht hilft, sagen Sie bitte dem Betreiber dieses Servers Bescheid.",
  "The message you were editing was changed elsewhere. Your text is in the box below.": "Die Nachricht, die hier bearbeitet wurde, ist anderswo geändert worden. Der Text steht unten im Eingabefeld.",
  "The run failed. {why}": "Der Lauf ist fehlgeschlagen. {why}",
  "The run was stopped.": "Der Lauf wurde angehalten.",
  "The server cannot be reached.": "Der Server ist nicht erreichbar.",
  "The server cannot be reached. Try again.": "Der Server ist nicht erreichbar. Noch einmal versuchen.",
  "The server did not answer. Try again.": "Der Server hat nicht geantwortet. Noch einmal versuchen.",
  "The server rejected the changes.": "Der Server hat die Änderungen zurückgewiesen.",
  "The server took too long.": "Der Server hat zu lange gebraucht.",
  "The text has {count} characters, and a message holds at most {most}, so the text was attached as a file.": "Der Text hat {count} Zeichen, in eine Nachricht passen höchstens {most}. Er wurde deshalb als Datei angehängt.",
  "The tool has changed in the meantime. Your changes to it were undone.": "Das Werkzeug hat sich inzwischen geändert. Ihre Änderungen daran wurden zurückgenommen.",
  "The verification was interrupted. Try again.": "Die Prüfung wurde unterbrochen. Noch einmal versuchen.",
  "This browser blocks notifications for this page. Allow them in the browser’s settings.": "Dieser Browser blockiert Benachrichtigungen dieser Seite. Sie lassen sich in seinen Einstellungen für die Seite erlauben.",
  "Tick the box above first.": "Zuerst die Prüfung bestätigen.",
  "Turn notifications off": "Benachrichtigungen ausschalten",
  "Unfold everything first.": "Zuerst alles ausklappen.",
  "Verifying…": "Wird geprüft…",
  "Wait two seconds, then tap once.": "Zwei Sekunden warten, dann einmal tippen.",
  "Wrap": "Umbrechen",
  "Wrap long lines": "Lange Zeilen umbrechen",
  "You are notified of new calls when no hitlchat page is in front.": "Neue Aufrufe werden gemeldet, solange keine Seite von hitlchat vorn ist.",
  "You are signed out. Sign in again in another tab.": "Sie sind abgemeldet. Bitte in einem anderen Tab erneut anmelden.",
  "You typed a moment ago. Wait a second, then press the key again.": "Sie haben gerade noch getippt. Warten Sie eine Sekunde, dann drücken Sie die Taste noch einmal.",
  "Your answer ({verdict}) will be sent when the connection is back.": "Ihre Antwort ({verdict}) wird gesendet, sobald die Verbindung wieder steht.",
  "Your answer may not have arrived. If the card is still here when the connection is back, answer again.": "Die Antwort ist vielleicht nicht angekommen. Wenn diese Karte noch da ist, sobald die Verbindung wieder steht, bitte noch einmal antworten.",
  "Your last message may not have arrived. When the connection is back, check, and send it again if needed.": "Ihre letzte Nachricht ist vielleicht nicht angekommen. Bitte nachsehen, sobald die Verbindung wieder steht, und sie sonst noch einmal senden.",
  "Your message will be sent as soon as this page is connected.": "Ihre Nachricht wird gesendet, sobald diese Seite verbunden ist.",
  "approve": "genehmigen",
  "decline": "ablehnen",
  "hitlchat itself did not answer as expected. Reload the page and try again.": "hitlchat selbst hat nicht wie erwartet geantwortet. Die Seite neu laden und noch einmal versuchen.",
  "not saved": "nicht gespeichert",
  "to be removed": "entfällt",
  "{count} calls no longer wait for an answer.": "{count} Aufrufe warten nicht mehr auf eine Antwort.",
  "{count} change is not applied and would be lost.": [
    "{count} Änderung ist nicht übernommen und ginge verloren.",
    "{count} Änderungen sind nicht übernommen und gingen verloren."
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
