// How the search weighs what it finds: Sphinx's own figures, and the project's own pages come last.
const PROJECT = /^(contributing\/|[^/]+$)/;

var Scorer = {
  score: ([page, , , , score]) => (PROJECT.test(page) && page !== "index" ? score - 1000 : score),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
