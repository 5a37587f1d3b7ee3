// A question that is a form: chips, switches and texts, field by field in the agent's order.
import { useId, useState } from "react";
import type { Field, Form, FormAnswer } from "../wire";
import { unhidden } from "../ui/hidden";

type Values = Record<string, unknown>;

/** What was filled in, as the host wants it: fields that were left alone are left out. */
export function filled(form: Form, values: Values): Record<string, never> {
  const given = form.fields.filter((field) => {
    const value = values[field.name];
    return value !== undefined && value !== "" && !(Array.isArray(value) && value.length === 0);
  });
  return Object.fromEntries(given.map((field) => [field.name, values[field.name]])) as Record<string, never>;
}

/** The first field that has to be filled in and is not. */
export function missing(form: Form, values: Values): Field | undefined {
  const given = filled(form, values);
  const has = (name: string) => name in given || form.fields.some((other) => other.instead_of === name && other.name in given);
  return form.fields.find((field) => field.required && field.default == null && !has(field.name));
}

export function FormCard({ form, disabled, answer }: { form: Form; disabled: boolean; answer: (answer: FormAnswer) => void }) {
  const [values, setValues] = useState<Values>(() => Object.fromEntries(form.fields.filter((field) => field.default != null).map((field) => [field.name, field.default])));
  const left = missing(form, values);
  return (
    <form
      class="mt-3 grid grid-cols-1 gap-4"
      onSubmit={(event) => {
        event.preventDefault();
        if (!left) answer({ do: "fill", values: filled(form, values) });
      }}
    >
      {form.message ? <p class="text-sm text-quiet [overflow-wrap:anywhere]">{unhidden(form.message).text}</p> : null}
      {form.fields.map((field) => (
        <FieldRow key={field.name} field={field} value={values[field.name]} onChange={(value) => setValues((all) => ({ ...all, [field.name]: value }))} />
      ))}
      <div class="grid grid-cols-[1fr_auto] gap-2">
        <button type="submit" class="btn btn-main min-h-12" disabled={disabled || left !== undefined}>
          {left ? `“${left.title}” is missing` : "Answer"}
        </button>
        <button type="button" class="btn btn-soft min-h-12" disabled={disabled} onClick={() => answer({ do: "decline" })}>
          Decline
        </button>
      </div>
    </form>
  );
}

interface FieldProps {
  field: Field;
  value: unknown;
  onChange: (value: unknown) => void;
}

function FieldRow({ field, value, onChange }: FieldProps) {
  const id = useId();
  const { kind } = field;
  const title = unhidden(field.title).text;
  switch (kind.type) {
    case "text":
      return (
        <label class="grid gap-1.5" htmlFor={id}>
          <span class="label">{title}</span>
          <input id={id} class="field" value={String(value ?? "")} maxLength={kind.chars_max ?? undefined} onInput={(event) => onChange(event.currentTarget.value)} />
        </label>
      );
    case "number":
      return (
        <label class="grid gap-1.5" htmlFor={id}>
          <span class="label">{title}</span>
          <input
            id={id}
            class="field"
            type="number"
            inputMode={kind.whole ? "numeric" : "decimal"}
            step={kind.whole ? 1 : "any"}
            min={kind.min ?? undefined}
            max={kind.max ?? undefined}
            value={value === undefined ? "" : String(value)}
            onInput={(event) => onChange(event.currentTarget.value === "" ? undefined : event.currentTarget.valueAsNumber)}
          />
        </label>
      );
    case "yes_no":
      return (
        <Chips title={title} name={id} many={false} choices={[{ value: "yes", label: "Yes" }, { value: "no", label: "No" }]} chosen={value === undefined ? [] : [value ? "yes" : "no"]} onChange={(chosen) => onChange(chosen[0] === "yes")} />
      );
    case "one":
      return <Chips title={title} name={id} many={false} choices={kind.choices} chosen={value === undefined ? [] : [String(value)]} onChange={(chosen) => onChange(chosen[0])} />;
    case "many":
      return <Chips title={title} name={id} many choices={kind.choices} chosen={Array.isArray(value) ? value.map(String) : []} onChange={onChange} />;
  }
}

interface ChipsProps {
  title: string;
  name: string;
  many: boolean;
  choices: { value: string; label: string }[];
  chosen: string[];
  onChange: (chosen: string[]) => void;
}

function Chips({ title, name, many, choices, chosen, onChange }: ChipsProps) {
  return (
    <fieldset>
      <legend class="label mb-1.5">{title}</legend>
      <div class="flex flex-wrap gap-2">
        {choices.map((choice) => {
          const on = chosen.includes(choice.value);
          return (
            <label key={choice.value} class="flex min-h-11 cursor-pointer items-center rounded-full px-4 text-[0.9375rem] ring-1 ring-line has-checked:bg-accent-soft has-checked:ring-2 has-checked:ring-accent has-focus-visible:outline-2">
              <input
                type={many ? "checkbox" : "radio"}
                name={name}
                class="sr-only"
                checked={on}
                onChange={() => {
                  if (!many) onChange([choice.value]);
                  else onChange(on ? chosen.filter((value) => value !== choice.value) : [...chosen, choice.value]);
                }}
              />
              {unhidden(choice.label).text}
            </label>
          );
        })}
      </div>
    </fieldset>
  );
}
