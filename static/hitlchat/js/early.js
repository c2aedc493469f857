// @ts-check
/** Enter in a message before the scripts of its page are there: it is sent once they are, unless it changes. Not a module: those come late. */

document.addEventListener("keydown", (event) => {
  const form = event.target instanceof HTMLTextAreaElement ? event.target.form : null;
  if (!form?.matches("[data-composer]:not([data-ready])") || event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  form.dataset.due = "";
});
document.addEventListener("input", (event) => event.target instanceof HTMLTextAreaElement && delete event.target.form?.dataset.due);
