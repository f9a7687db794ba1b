// The theme's search dialog has no name of its own.
document.querySelector("[data-md-component=search]")?.setAttribute("aria-label", "Search");
