// One sentence on what is seen, as parts: a text, or [text, what it is]: a "query", a "key" or a "name".

import { moment } from "../shared/names.js";
import { minus, percent } from "../shared/numbers.js";
import { addsOf } from "./adds.js";
import { one, power, share, tiny, two } from "./arithmetic.js";
import { written } from "./camera.js";
import { effectsOf, effectText, numbersOf } from "./row.js";
import { COSTS } from "./needs.js";
import { wayOf } from "./number.js";
import { placesFinding } from "./positions.js";
import { headsOf, WITHIN } from "./pytorch.js";
import { HEADS, MODEL, NUMBER, ORDERS, ROW, WHY } from "./state.js";

const NAMED = 3; // words that settle late, in one sentence
const SHARP = 0.99; // a row in which a small change of a score changes almost nothing

const query = (text) => [text, "query"];
const key = (text) => [text, "key"];
const name = (text) => [text, "name"];
const counted = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;

/** How a sentence about the selected row begins: with both words where the head follows the one that
 * the row predicts. */
function rowStart(state) {
  const both = state.moment(), row = state.rowNames()[state.row()];
  return both ? [...moment(key(both[0]), query(both[1])), ", "] : ["At ", query(row), ", "];
}

/** The two columns with the largest weights that the selected row may attend to, the largest first. */
function bestOf(state) {
  const part = state.part(), tile = state.tileOf(part), row = state.row(), weights = state.weights();
  return [...weights.keys()].filter((at) => !state.isMasked(part, tile, row, at)).toSorted((a, b) => weights[b] - weights[a]);
}

export function findingOf(state) {
  const part = state.part(), row = state.row();
  if (state.depth === MODEL && state.seen) return [null, ofAfter, ofNeeds, ofPaths, placesFinding, placesFinding][state.seen](state);
  if (state.isCovered(part, state.tileOf(part), row)) return ["This row is covered until you answer."];
  if (state.depth === NUMBER) return ofNumber(state);
  if (state.depth === ROW) return ofRow(state);
  if (state.token && state.second !== null) {
    const found = state.linkingWords();
    if (found) return [[state.name(found.place), "go", found], " links these two most: from ", query(found.from), " it attends to ", key(found.to), ` with ${percent(found.weight)}.`];
  }
  const [best] = bestOf(state), weights = state.weights(), names = state.keyNames();
  if (best === undefined) return [...rowStart(state), name(state.name()), " may attend to no key: all its weights are 0."];
  const off = state.isOff(state.tile) ? [" But it is off: nothing of this is passed on."] : [];
  if (state.depth === MODEL) return [...ofMaps(state), ...off];
  if (state.depth === HEADS && state.order) return [...ofHeads(state), ...off];
  if (state.depth === HEADS && state.key >= 0) return [...ofPair(state), ...off];
  if (state.depth === HEADS)
    return [`${counted(state.count, "head")} in ${counted(new Set(state.run.parts.flatMap(({ numbers }) => numbers)).size, "layer")}. `,
      name(state.name()), " is selected: from ", query(state.rowNames()[row]), ` it attends most to `, key(names[best]),
      ` (${percent(weights[best])}).`, ...off];
  if (state.view === 2 && state.bestTiles(part).length) return ofBest(state);
  if (state.isBeside) return ofPytorch(state);
  const isEven = state.mix === 1 && state.isEven();
  return [...rowStart(state), name(state.name()), isEven ? " attends to all about evenly, most to " : " attends most to ",
    key(names[best]), ` (${percent(weights[best])}).`, ...off];
}

/** Which head links the two words of the chosen cell most. */
function ofPair(state) {
  const { place, weight, count } = state.linking(), kind = place.kind.replaceAll("_", " ");
  return [`Of ${counted(count, `${kind} head`)}, `, name(state.name(place)), " gives ", key(state.keyNames()[state.key]), " most at ", query(state.rowNames()[state.row()]), `: ${percent(weight)}.`];
}

/** How many heads of the selected one's kind agree with it. */
function ofMaps(state) {
  const { column, agreeing, count } = state.agreeing(), word = state.rowNames()[state.row()], part = state.part();
  const start = state.shift() ? ["To write ", query(word), ", "] : ["At ", query(word), ", "], to = key(state.keyNames()[column]);
  const share = percent(state.weights()[column]), kind = part.kind.replaceAll("_", " ");
  if (agreeing.length < 2) return [...start, name(state.name()), " attends most to ", to, ` (${share}), ${count > 1 ? `alone among ${count} heads` : "the only head"}.`];
  return [...start, `${agreeing.length === count ? `all ${count}` : `${agreeing.length} of ${count}`} ${kind} heads attend most to `, to,
    ...(state.look.projector ? ["."] : [" (", name(state.name()), `: ${share}).`])]; // in Present there is less room
}

const isWriting = ({ run: { answers, sides } }) => answers.rows.length > 1 && sides[answers.side].following.length > 0;

/** What the model would write without its last layer. */
function ofAfter(state) {
  const found = state.answered({ what: "after" });
  if (found === undefined) return ["Reading what it would write after each layer …"];
  if (!found) return ["What it would write after each layer is not known here."];
  const { answers, settled } = found, last = answers.length - 1, final = answers[last];
  if (!last) return ["A model without layers has one prediction."];
  const stop = last > 1 ? `after layer ${last - 1}` : "before layer 1", write = isWriting(state) ? "write" : "predict";
  if (final.length === 1)
    return ["Its answer is ", name(final[0]), settled[0] ? ` from layer ${settled[0]} on.` : " already before layer 1."];
  const late = [...settled.keys()].filter((row) => settled[row] === last), count = final.length, already = count - late.length;
  if (!late.length) return [`If it stopped ${stop}, it would ${write} all ${count.toLocaleString("en")} words already.`];
  const named = late.length > NAMED ? [`the other ${late.length}`] : late.flatMap((row, at) => [at ? (at < late.length - 1 ? ", " : " and ") : "", name(final[row].trim() || "␣")]);
  return [`If it stopped ${stop}, it would ${write} ${already} of ${count.toLocaleString("en")} words already; `, ...named,
    ` ${late.length === 1 ? "settles" : "settle"} in layer ${last}.`];
}

/** Which words a prediction needs, and what attention says of them. */
function ofNeeds(state) {
  const found = state.answered(state.needed()), target = query((state.answersAt()?.[0]?.[0] ?? "").trim());
  if (found === undefined) return ["Hiding each word in turn …"];
  if (!found) return ["What each word costs is not known here."];
  const { words, attention, probability, all } = found, lost = (at) => all - probability[at], order = [...words.keys()].toSorted((a, b) => lost(b) - lost(a));
  if (!words.length) return [target, " depends on no word: the text has none."];
  const [first, second] = order.filter((at) => lost(at) >= COSTS), most = attention.indexOf(Math.max(...attention)), share = (at) => percent(attention[at]);
  if (first === undefined)
    return [target, " needs no single word: it keeps at least ", percent(probability[order[0]]), " of its ", `${percent(all)}.`];
  if (first !== most)
    return ["Attention says ", key(words[most]), ", removal says ", key(words[first]), ": without it ", target, ` falls from ${percent(all)} to ${percent(probability[first])}.`];
  const also = second === undefined ? [] : [", and ", key(words[second]), `, which has ${share(second)}`];
  return [target, " needs ", key(words[first]), `, which has ${share(first)} of the attention`, ...also, "."];
}

/** How few paths carry a difference, and how much of others. */
function ofPaths(state) {
  const found = state.answered(state.pathsOf()), { measured } = state.pathsOf();
  if (found === null) return ["The paths are not known here."];
  if (found?.cannot) return [found.cannot];
  if (found?.said) return found.said.map((text, at) => (at % 2 ? name(text.trim() || "␣") : text));
  return [`Changing one path at a time … ${measured ? `${measured.toLocaleString("en")} measured.` : ""}`];
}

/** What the heads that align best say together of the selected row. */
function ofBest(state) {
  const part = state.part(), { names, weight, own } = state.linesOf(2), tiles = state.bestTiles(part);
  const which = tiles.flatMap((tile, at) => [at ? at === tiles.length - 1 ? " and " : ", " : "",
    name(state.name({ kind: part.kind, layer: Math.floor(tile / part.heads), head: tile % part.heads }))]);
  const of = ["The heads that align words best, ", ...which];
  if (!names[own]) return [...of, ", in one picture."];
  const weights = Array.from({ length: part.columns }, (_, at) => weight(own, at)), best = weights.indexOf(Math.max(...weights));
  return [...of, ", link ", query(names[own]), " to ", key(state.keyNames()[best]), ` (${percent(weights[best])}).`];
}

/** Whether PyTorch has the same weights: in the chosen cell, or in all heads. */
function ofPytorch(state) {
  const found = state.beside, { weights, apart, logits } = found ?? {}, cell = state.row() * (weights?.columns ?? 0) + state.key;
  if (found === undefined) return ["Running torch.nn.Transformer with the same weights …"];
  if (!found) return ["The weights of torch.nn.Transformer are not known here."];
  if (found.cannot) return [found.cannot];
  const twin = name("torch.nn.Transformer"), [theirs, ours] = [0, apart?.data[cell]].map((more) => (weights?.data[cell] + more).toFixed(7));
  if (weights && state.key >= 0 && weights.data[cell] > 0)
    return [query(state.rowNames()[state.row()]), " gives ", key(state.keyNames()[state.key]), " ", name(ours), ...(ours === theirs ? [", here and in PyTorch."] : [" here, ", name(theirs), " in PyTorch."])];
  const heads = headsOf(state, found), { tile, value } = heads.reduce((most, head) => (head.value > most.value ? head : most));
  if (heads.some((head) => Number.isNaN(head.value))) return [twin, " has no weights where a row may attend to no key: a softmax over nothing is undefined. Headlight's are 0."];
  if (value > WITHIN) return ["They differ: ", name(state.name(tile)), " by ", name(String(Number(value.toPrecision(2)))), `, where rounding explains at most ${tiny(WITHIN)}.`];
  if (logits.data[0] > WITHIN) return ["All weights agree, but the logits differ by ", name(String(Number(logits.data[0].toPrecision(2)))), " of the largest one."];
  return [twin, " agrees: no head differs ", ...(value ? ["by more than ", name(tiny(value))] : ["at all"]), "."];
}

/** What the order of the heads says of the selected one. */
function ofHeads(state) {
  const { order, tile: { kind, layer, head } } = state, told = state.told[ORDERS[order]];
  if (state.lacking === order) return ["This order is not known here: the heads stand by layer."];
  if (!told) return ["Measuring the heads …"];
  const known = order === 1 ? told.heads.find((one) => one.kind === kind && one.layer === layer && one.head === head) : null;
  if (order === 1)
    return [...(known?.finding ?? []).map(([text, tag]) => (tag ? name(text) : text)),
      told.sentences ? ` Over ${told.sentences.toLocaleString("en")} sentences.` : " In this sentence."];
  const effects = Object.entries(told.effects).flatMap(([one, layers]) => layers.flatMap((heads, l) => heads.map((effect, h) => [effect, { kind: one, layer: l, head: h }])));
  const [least, where] = effects.filter(([effect]) => effect !== null).toSorted(([a], [b]) => a - b)[0], own = told.effects[kind][layer][head];
  const written = (effect) => minus(`${effect > 0 ? "+" : ""}${effect.toFixed(2)}`);
  const most = state.name(where), { needed, sentences } = told, always = needed && `${needed[0].replaceAll("_", " ")} ${needed[1]}.${needed[2]}`;
  return ["This sentence loses most without ", name(most), `: ${written(least)} in log-probability.`,
    ...(state.name() === most || own === null ? [] : [" Without ", name(state.name()), `: ${written(own)}.`]),
    ...(always ? [` Over ${sentences.toLocaleString("en")} sentences, the model needs `, name(always), " most."] : [])];
}

/** What adds up to the logit of the word that the row writes. */
function ofAdds(state) {
  const told = state.answered(state.addsOf()), word = query(state.run.answers.rows[state.writing()][0][0].trim() || "␣");
  if (told === undefined) return ["Taking the logit of ", word, " apart …"];
  if (!told || told.cannot) return [told?.cannot ?? "What adds up to this logit is not known here."];
  const { logit, steps, own } = addsOf(state), most = steps.reduce((best, { value }, at) => (value > steps[best].value ? at : best), 0), { name: largest, value } = steps[most];
  const start = ["The logit of ", word, ` is ${one(logit)}, a sum of ${steps.length} parts. `];
  if (value <= 0) return [...start, "None of them adds to it."];
  if (own === most) return [...start, name(largest), ", this head, adds the most: ", `${one(value)}.`];
  return [...start, name(largest), " adds the most: ", one(value), own < 0 ? "." : `; this head, ${steps[own].name}, ${one(steps[own].value)}.`];
}

function ofRow(state) {
  if (state.isAdding) return ofAdds(state);
  const { vectors, isScaled } = state, names = state.keyNames(), from = query(state.rowNames()[state.row()]);
  if (vectors?.isMissing) return ["The scores of this head did not come. ", "Choose the row again to ask once more."];
  const [first, second] = bestOf(state), weights = state.weights();
  if (first === undefined) return [from, " may attend to no key, so all its weights are 0."];
  const numbers = numbersOf(state);
  if (!numbers && !state.isWeighed) return ["The scores of ", from, " are on their way."];
  if (!numbers) {
    const beside = second === undefined ? [] : [", ", key(names[second]), ` ${share(weights[second])}`];
    return [from, " gives ", key(names[first]), ` ${share(weights[first])}`, ...beside, " of its attention.",
      state.isBare ? ` ${state.look.alone?.lacking ?? ""}` : " Its scores are on their way."];
  }
  if (!numbers.isFinite) return ["The scores of ", from, " are NaN or infinite: no bars can be drawn."];
  const [best, next] = [key(names[first]), second === undefined ? null : key(names[second])];
  if (!next) return [from, " may attend to ", best, ` alone, which gets all the weight, whatever its score, ${one(numbers.raw[first])}.`];
  const root = `√${vectors.v.columns}`, { raw, scaled, logSum } = numbers;
  switch (state.stop) {
    case 0: {
      const most = [...raw.keys()].filter((at) => numbers.allowed.has(at)).toSorted((a, b) => raw[b] - raw[a])[0];
      return ["The query ", from, " fits the key ", key(names[most]), ` best: q · k is ${one(raw[most])}.`];
    }
    case 1:
      return isScaled
        ? [`Divided by ${root}, `, best, ` has ${two(scaled[first])}, `, next, ` ${two(scaled[second])}. The order stays, the gaps shrink.`]
        : [`Not divided by ${root}, `, best, ` stays at ${one(raw[first])}, ${one(raw[first] - raw[second])} ahead of `, next, "."];
    case 2: {
      if (isScaled && !numbers.isOwn)
        return [best, ` gets ${share(numbers.own[first])}, `, next, ` ${share(numbers.own[second])}: not the softmax of these scores alone.`];
      if (isScaled)
        return [`Softmax: e to the power of ${two(scaled[first])} is ${power(scaled[first])}, of ${power(logSum)} in all. `,
          best, ` gets ${share(numbers.weights[first])}, `, next, ` ${share(numbers.weights[second])}.`];
      const [now, before] = [share(numbers.weights[first]), share(numbersOf(state, true).weights[first])];
      return [`Without ÷ ${root}, `, best, now === before ? ` keeps ${now}.` : ` takes ${now} instead of ${before}.`,
        numbers.weights[first] > SHARP ? " In so sharp a row, a small change of a score changes almost nothing." : ""];
    }
    default: {
      const effects = effectsOf(state);
      if (effects) return ofEffects(state, effects, first);
      const rest = 1 - numbers.weights[first] - numbers.weights[second];
      return [`The output is ${share(numbers.weights[first])} of the value of `, best, `, ${share(numbers.weights[second])} of that of `,
        next, rest > 0.005 ? `, and ${share(rest)} of the rest.` : "."];
    }
  }
}

/** How far weight and effect agree: of the key with the most weight. */
function ofEffects(state, effects, first) {
  const names = state.keyNames(), word = query(state.run.answers.rows[state.writing()][0][0].trim() || "␣");
  const most = effects.reduce((best, effect, at) => (Math.abs(effect) > Math.abs(effects[best]) ? at : best), 0);
  const start = [key(names[first]), ` has ${share(numbersOf(state).weights[first])} of the weight`];
  if (most !== first) return [...start, ` and ${effectText(effects[first])} of the effect on `, word, "; ", key(names[most]), ` has ${effectText(effects[most])}.`];
  return effects[first] > 0 ? [...start, ` and ${effectText(effects[first])} of the effect on `, word, "."]
    : [...start, ", and most of the effect: it makes ", word, " less likely."];
}

/** Why a query attends to a key. */
function ofWhy(state) {
  const found = state.answered(state.whyOf());
  if (found === undefined) return ["Looking for what ", key(state.keyNames()[state.column()]), " has and the other keys lack …"];
  if (!found) return ["The reasons of this weight are not known here."];
  const start = ["Why ", key(state.keyNames()[state.column()]), "? "], { kind, margin, meeting, pulls: [puller, pull], rows, columns, weight } = found;
  if (found.cannot) return [...start, found.cannot];
  if (kind === "none") return [...start, `It scores ${one(-margin)} below the mean of the other keys: it is not preferred here.`];
  const above = `It scores ${one(margin)} above the other keys`;
  if (kind === "pull") return [...start, `${above}: ${percent(Math.min(1, pull / margin))} is there for every query, mostly from `, key(puller), "."];
  if (kind === "position") return [...start, `${above}: ${percent(meeting[0][2])} comes from where the two stand.`];
  if (kind === "meeting")
    return [...start, `${above}: `, ...meeting.flatMap(([ask, offer, part], at) =>
      [at ? `, ${percent(part)} ` : `${percent(part)} is `, name(ask), " meeting ", name(offer)]), "."];
  const needed = [...rows, ...columns].filter(({ without }) => without !== null).toSorted((a, b) => a.without - b.without)[0];
  const yet = needed?.without < weight ? [" Without ", name(needed.name), `, it falls from ${written(weight)} to ${written(needed.without)}.`] : [];
  return [...start, kind === "conflict" ? `${above}: large reasons for and against it cancel.` : "Many small reasons: none leads.", ...yet];
}

/** What a query and a key give, and of what. */
function ofNumber(state) {
  if (state.number === WHY) return ofWhy(state);
  const pair = [query(state.rowNames()[state.row()]), " · ", key(state.keyNames()[state.column()])], way = wayOf(state);
  if (state.vectors?.isMissing || state.answered(state.vectorsOf()) === null)
    return ["The numbers of this head did not come. ", "Choose the row again to ask once more."];
  if (!way) return ["The numbers of ", ...pair, " are on their way."];
  const { terms, sum, isMasked } = way;
  if (!Number.isFinite(sum)) return [...pair, " is NaN or infinite: no steps can be drawn."];
  if (isMasked) return [...pair, ` is ${one(sum)}, but the key is masked: its weight is 0.`];
  if (!way.isOwn) return [...pair, ` is ${one(sum)}. The weight, ${way.said}, is not the softmax of such scores alone.`];
  const [up, down] = [terms.filter(({ product }) => product > 0), terms.filter(({ product }) => product < 0)];
  const total = (of) => one(Math.abs(of.reduce((all, { product }) => all + product, 0)));
  if (state.number) return [...pair, ` is ${one(sum)}: ${up.length} products add ${total(up)}, ${down.length} subtract ${total(down)}.`];
  const largest = Math.max(...terms.map(({ product }) => product));
  return [...pair, ` is ${one(sum)}, a sum of ${terms.length} products; the largest is ${one(largest)}.`];
}

/** What a cell says aloud. */
export function spokenCell(state) {
  const part = state.part(), tile = state.tileOf(part), row = state.row(), column = state.column();
  const names = `${state.rowNames()[row]}, ${state.keyNames()[column]}: `;
  if (state.isCovered(part, tile, row)) return `${names}covered`;
  return names + (state.isMasked(part, tile, row, column) ? "masked" : written(state.weight(part, tile, row, column)));
}
