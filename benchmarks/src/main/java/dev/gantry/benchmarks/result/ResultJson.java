// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.result;

import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParseException;
import com.google.gson.JsonParser;
import com.google.gson.JsonPrimitive;
import com.google.gson.TypeAdapter;
import com.google.gson.stream.JsonReader;
import com.google.gson.stream.JsonWriter;
import java.io.IOException;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.RecordComponent;
import java.time.DateTimeException;
import java.time.Instant;

/// Writes and reads the JSON of a bench. Its fields are the components of [Result]; each point
/// also has figures that are computed from its other fields. `docs/performance.md` describes the
/// JSON.
public final class ResultJson {
  /// The only schema that this class writes and reads.
  public static final int SCHEMA = 1;

  public static final Gson GSON =
      new GsonBuilder()
          .disableHtmlEscaping()
          .registerTypeAdapter(Instant.class, new Instants())
          .create();

  private static final Gson INDENTED = GSON.newBuilder().setPrettyPrinting().create();

  private ResultJson() {}

  private static final class Instants extends TypeAdapter<Instant> {
    @Override
    public void write(JsonWriter out, Instant value) throws IOException {
      out.value(value.toString());
    }

    @Override
    public Instant read(JsonReader in) throws IOException {
      return Instant.parse(in.nextString());
    }
  }

  /// Returns the whole document, indented.
  public static String text(Result result) {
    JsonObject json = new JsonObject();
    json.addProperty("schema", SCHEMA);
    GSON.toJsonTree(result).getAsJsonObject().asMap().forEach(json::add);
    for (int i = 0; i < result.points().size(); i++) {
      Point point = result.points().get(i);
      JsonObject fields = json.getAsJsonArray("points").get(i).getAsJsonObject();
      fields.addProperty("unit", "GB/s");
      fields.addProperty("least", point.spread().least());
      fields.addProperty("median", point.spread().median());
      fields.addProperty("most", point.spread().most());
      result.ratio(point).ifPresent(ratio -> fields.addProperty("ceilingRatio", ratio));
    }
    return INDENTED.toJson(json);
  }

  /// @param text the contents of a `bench.json`
  /// @throws IllegalArgumentException if the text is not a result of this schema
  public static Result read(String text) {
    try {
      JsonElement json = JsonParser.parseString(text);
      require(json, Result.class);
      if (!new JsonPrimitive(SCHEMA).equals(json.getAsJsonObject().get("schema"))) {
        throw new JsonParseException("schema is not " + SCHEMA);
      }
      return GSON.fromJson(json, Result.class);
    } catch (JsonParseException | IllegalStateException | DateTimeException e) {
      throw new IllegalArgumentException(e.getMessage(), e);
    }
  }

  /// Checks that every field of a record is present, because Gson would read a missing field as
  /// null or 0, and that no value is null.
  private static void require(JsonElement json, Class<?> type) {
    for (RecordComponent component : type.getRecordComponents()) {
      JsonElement field = json.getAsJsonObject().get(component.getName());
      if (field == null || field.isJsonNull()) {
        throw new JsonParseException("there is no " + component.getName());
      }
      if (component.getType().isRecord()) {
        require(field, component.getType());
      } else if (component.getGenericType() instanceof ParameterizedType generic
          && field.isJsonArray()) {
        Class<?> element = (Class<?>) generic.getActualTypeArguments()[0];
        field
            .getAsJsonArray()
            .forEach(each -> {
              if (element.isRecord()) {
                require(each, element);
              } else if (each.isJsonNull()) {
                throw new JsonParseException(component.getName() + " holds null");
              }
            });
      } else if (component.getType().isEnum()
          && GSON.fromJson(field, component.getType()) == null) {
        throw new JsonParseException(component.getName() + " is unknown: " + field);
      }
    }
  }
}
