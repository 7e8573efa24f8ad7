
// A frame that is too narrow for a method's whole name: packages become their first letters, then it loses its parameters, its packages,
// its class. `fitting_name` does the same.
function fitted(name, room) {
    if (room < 3) return "";
    var open = name.indexOf("(");
    var head = open < 0 ? name : name.substring(0, open);
    var parameters = open < 0 ? "" : name.substring(open);
    var parts = head.split(".");
    var shorter = function () { return parts.join(".") + parameters; };
    for (var i = 0; i < parts.length - 2 && shorter().length > room; i++) parts[i] = parts[i].charAt(0);
    if (open >= 0 && parts.join(".").length + 2 > room && shorter().length > room) parts = parts.slice(-2);
    if (open >= 0 && parts.join(".").length + 2 > room && shorter().length > room) parts = parts.slice(-1);
    return shorter().length <= room ? shorter() : shorter().substring(0, room - 1) + "\u2026";
}
function update_text(e) {
    var r = find_child(e, "rect");
    var t = find_child(e, "text");
    var w = parseFloat(r.attributes.width.value) * frames.attributes.width.value / 100 - 3;
    var name = find_child(e, "title").textContent.replace(/ \([^(]*\)$/, "");
    t.attributes.x.value = format_percent(parseFloat(r.attributes.x.value) + 100 * 3 / frames.attributes.width.value);
    t.textContent = fitted(name, Math.floor(w / (fontsize * fontwidth)));
}
function update_text_for_elements(elements) {
    for (var i = 0; i < elements.length; i++) update_text(elements[i]);
}
