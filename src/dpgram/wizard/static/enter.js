"use strict";
// From here on every address is asked for by a page of the wizard, so the strict cookie goes with it.
window.location.replace("data");
