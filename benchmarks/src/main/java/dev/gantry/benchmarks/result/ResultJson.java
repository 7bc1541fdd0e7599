// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.result;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import dev.gantry.core.MisuseException;
import java.io.IOException;
import java.io.StringWriter;
import java.io.UncheckedIOException;
import java.time.DateTimeException;
import java.time.Instant;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalDouble;
import java.util.TreeMap;

/// Writes and reads a bench's JSON. `docs/performance.md` says what it holds.
public final class ResultJson {
  /// Of what this class writes; a reader refuses any other.
  public static final int SCHEMA = 1;

  private ResultJson() {}

  /// The whole document, indented.
  public static String text(Result result) {
    StringWriter text = new StringWriter();
    try (JsonGenerator json = new JsonFactory().createGenerator(text)) {
      json.useDefaultPrettyPrinter();
      write(result, json);
    } catch (IOException e) {
      throw new UncheckedIOException("a string cannot be written to", e);
    }
    return text.toString();
  }

  private static void write(Result result, JsonGenerator json) throws IOException {
    json.writeStartObject();
    json.writeNumberField("schema", SCHEMA);
    write(result.run(), json);
    write(result.machine(), json);
    json.writeArrayFieldStart("points");
    for (Point point : result.points()) {
      write(point, result.ratio(point), json);
    }
    json.writeEndArray();
    json.writeArrayFieldStart("absences");
    for (Absence absence : result.absences()) {
      json.writeStartObject();
      json.writeStringField("what", absence.what());
      json.writeStringField("reason", absence.reason());
      json.writeEndObject();
    }
    json.writeEndArray();
    write(result.trace(), json);
    json.writeEndObject();
  }

  private static void write(Run run, JsonGenerator json) throws IOException {
    json.writeObjectFieldStart("run");
    json.writeStringField("version", run.version());
    json.writeStringField("commit", run.commit());
    json.writeStringField("command", run.command());
    json.writeStringField("date", run.date().toString());
    json.writeStringField("device", run.device());
    json.writeBooleanField("quick", run.quick());
    json.writeNumberField("repeats", run.repeats());
    json.writeNumberField("budgetSeconds", run.budgetSeconds());
    json.writeNumberField("seconds", run.seconds());
    json.writeNumberField("shortened", run.shortened());
    json.writeEndObject();
  }

  private static void write(Machine machine, JsonGenerator json) throws IOException {
    json.writeObjectFieldStart("machine");
    json.writeStringField("cpu", machine.cpu());
    json.writeNumberField("cores", machine.cores());
    json.writeNumberField("memoryBytes", machine.memoryBytes());
    json.writeStringField("kernel", machine.kernel());
    json.writeStringField("fileSystem", machine.fileSystem());
    json.writeStringField("java", machine.java());
    json.writeArrayFieldStart("gpus");
    for (String gpu : machine.gpus()) {
      json.writeString(gpu);
    }
    json.writeEndArray();
    json.writeStringField("driver", machine.driver());
    json.writeStringField("cufile", machine.cuFile());
    json.writeStringField("directAbsence", machine.direct());
    json.writeEndObject();
  }

  private static void write(Point point, OptionalDouble ratio, JsonGenerator json)
      throws IOException {
    Spread spread = point.spread();
    json.writeStartObject();
    json.writeStringField("group", point.group().name());
    json.writeStringField("name", point.name());
    json.writeStringField("what", point.what());
    json.writeStringField("heat", point.heat().toString());
    json.writeNumberField("bytes", point.bytes());
    json.writeStringField("unit", "GB/s");
    json.writeArrayFieldStart("repeats");
    for (double rate : point.repeats()) {
      json.writeNumber(rate);
    }
    json.writeEndArray();
    json.writeNumberField("least", spread.least());
    json.writeNumberField("median", spread.median());
    json.writeNumberField("most", spread.most());
    json.writeStringField("ceiling", point.ceiling());
    if (ratio.isPresent()) {
      json.writeNumberField("ceilingRatio", ratio.getAsDouble());
    }
    json.writeObjectFieldStart("parameters");
    for (Map.Entry<String, Long> parameter : new TreeMap<>(point.parameters()).entrySet()) {
      json.writeNumberField(parameter.getKey(), parameter.getValue());
    }
    json.writeEndObject();
    json.writeStringField("note", point.note());
    json.writeEndObject();
  }

  private static void write(Trace trace, JsonGenerator json) throws IOException {
    json.writeObjectFieldStart("trace");
    json.writeStringField("what", trace.what());
    json.writeStringField("heat", trace.heat().toString());
    json.writeNumberField("bytes", trace.bytes());
    json.writeArrayFieldStart("stages");
    for (Trace.Stage stage : trace.stages()) {
      json.writeStartObject();
      json.writeStringField("name", stage.name());
      json.writeNumberField("millis", stage.millis());
      json.writeEndObject();
    }
    json.writeEndArray();
    json.writeArrayFieldStart("spans");
    for (Trace.Span span : trace.spans()) {
      json.writeStartObject();
      json.writeStringField("thread", span.thread());
      json.writeStringField("kind", span.kind());
      json.writeNumberField("from", span.from());
      json.writeNumberField("to", span.to());
      json.writeEndObject();
    }
    json.writeEndArray();
    json.writeStringField("absence", trace.absence());
    json.writeEndObject();
  }

  /// @param text of a `bench.json`
  /// @throws MisuseException if it is something else
  public static Result read(String text) {
    try (JsonParser json = new JsonFactory().createParser(text)) {
      json.nextToken();
      return result(new Fields(object(value(json))));
    } catch (IOException | ClassCastException | IllegalArgumentException | DateTimeException e) {
      throw new MisuseException("--from must be a bench.json: " + e.getMessage());
    }
  }

  private static Result result(Fields json) {
    if (json.integer("schema") != SCHEMA) {
      throw new IllegalArgumentException("schema is not " + SCHEMA);
    }
    Fields run = json.object("run");
    Fields machine = json.object("machine");
    Fields trace = json.object("trace");
    return new Result(
        new Run(
            run.text("version"),
            run.text("commit"),
            run.text("command"),
            Instant.parse(run.text("date")),
            run.text("device"),
            run.flag("quick"),
            Math.toIntExact(run.integer("repeats")),
            Math.toIntExact(run.integer("budgetSeconds")),
            run.number("seconds"),
            Math.toIntExact(run.integer("shortened"))),
        new Machine(
            machine.text("cpu"),
            Math.toIntExact(machine.integer("cores")),
            machine.integer("memoryBytes"),
            machine.text("kernel"),
            machine.text("fileSystem"),
            machine.text("java"),
            machine.array("gpus").stream().map(String.class::cast).toList(),
            machine.text("driver"),
            machine.text("cufile"),
            machine.text("directAbsence")),
        json.objects("points").stream().map(ResultJson::point).toList(),
        json.objects("absences").stream()
            .map(absence -> new Absence(absence.text("what"), absence.text("reason")))
            .toList(),
        new Trace(
            trace.text("what"),
            heat(trace),
            trace.integer("bytes"),
            trace.objects("stages").stream()
                .map(stage -> new Trace.Stage(stage.text("name"), stage.number("millis")))
                .toList(),
            trace.objects("spans").stream()
                .map(span ->
                    new Trace.Span(
                        span.text("thread"),
                        span.text("kind"),
                        span.number("from"),
                        span.number("to")))
                .toList(),
            trace.text("absence")));
  }

  private static Point point(Fields json) {
    Map<String, Long> parameters = new TreeMap<>();
    Fields given = json.object("parameters");
    given.values().keySet().forEach(key -> parameters.put(key, given.integer(key)));
    return new Point(
        Group.valueOf(json.text("group")),
        json.text("name"),
        json.text("what"),
        heat(json),
        json.integer("bytes"),
        json.array("repeats").stream().map(rate -> ((Number) rate).doubleValue()).toList(),
        json.text("ceiling"),
        parameters,
        json.text("note"));
  }

  private static Heat heat(Fields json) {
    return Heat.valueOf(json.text("heat").toUpperCase(java.util.Locale.ROOT));
  }

  private static Map<String, Object> object(Object value) {
    Map<String, Object> fields = new LinkedHashMap<>();
    ((Map<?, ?>) value).forEach((key, field) -> fields.put((String) key, field));
    return fields;
  }

  private static Object value(JsonParser json) throws IOException {
    return switch (json.currentToken()) {
      case START_OBJECT -> {
        Map<String, Object> fields = new LinkedHashMap<>();
        while (json.nextToken() == JsonToken.FIELD_NAME) {
          String name = json.currentName();
          json.nextToken();
          fields.put(name, value(json));
        }
        yield fields;
      }
      case START_ARRAY -> {
        List<Object> elements = new ArrayList<>();
        while (json.nextToken() != JsonToken.END_ARRAY) {
          elements.add(value(json));
        }
        yield elements;
      }
      case VALUE_STRING -> json.getText();
      case VALUE_NUMBER_INT, VALUE_NUMBER_FLOAT -> json.getNumberValue();
      case VALUE_TRUE -> true;
      case VALUE_FALSE -> false;
      case null, default -> throw new IllegalArgumentException("no such value is written");
    };
  }

  /// An object's fields, each of which must be there.
  private record Fields(Map<String, Object> values) {
    Object field(String name) {
      Object value = values.get(name);
      if (value == null) {
        throw new IllegalArgumentException("there is no " + name);
      }
      return value;
    }

    String text(String name) {
      return (String) field(name);
    }

    long integer(String name) {
      return ((Number) field(name)).longValue();
    }

    double number(String name) {
      return ((Number) field(name)).doubleValue();
    }

    boolean flag(String name) {
      return (Boolean) field(name);
    }

    List<?> array(String name) {
      return (List<?>) field(name);
    }

    Fields object(String name) {
      return new Fields(ResultJson.object(field(name)));
    }

    List<Fields> objects(String name) {
      return array(name).stream().map(one -> new Fields(ResultJson.object(one))).toList();
    }
  }
}
