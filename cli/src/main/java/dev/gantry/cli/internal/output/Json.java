// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.output;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.core.StreamWriteFeature;
import dev.gantry.core.Device;
import dev.gantry.core.Location;
import dev.gantry.core.TensorShape;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.UncheckedIOException;
import java.lang.reflect.Method;
import java.lang.reflect.RecordComponent;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import java.util.function.Function;

/// Prints values as JSON. A record becomes an object with a member for each component. Maps
/// become objects; collections, float arrays and shapes become arrays; numbers and booleans stay
/// what they are. Locations, devices and all other values become strings.
public final class Json {
  /// Receives the elements of an array, one per call.
  @FunctionalInterface
  public interface Taker {
    void take(Object element) throws IOException;
  }

  /// An array whose elements are produced one after the other, because all of them may not fit
  /// into memory.
  @FunctionalInterface
  public interface Elements {
    void forEach(Taker taker) throws IOException;
  }

  /// A value that chooses its own JSON: the value that [#json] returns is printed in its place.
  @FunctionalInterface
  public interface Document {
    Object json();
  }

  private Json() {}

  /// Returns an object without members, to which members can be added.
  public static JsonObject object() {
    return new JsonObject();
  }

  /// Returns an object with a member for each element.
  public static <T> JsonObject byName(
      Collection<T> elements,
      Function<? super T, String> name,
      Function<? super T, ? extends Object> value) {
    JsonObject object = object();
    elements.forEach(element -> object.with(name.apply(element), value.apply(element)));
    return object;
  }

  /// Prints one document.
  public static void print(PrintWriter out, Object document) {
    try (JsonGenerator json =
        JsonFactory.builder()
            .disable(StreamWriteFeature.AUTO_CLOSE_TARGET)
            .build()
            .createGenerator(out)) {
      json.useDefaultPrettyPrinter();
      write(document, json);
    } catch (IOException e) {
      throw new UncheckedIOException("the JSON document is incomplete", e);
    }
    out.println();
    out.flush();
  }

  /// An object whose members keep their order.
  public static final class JsonObject {
    private final Map<String, Object> members = new LinkedHashMap<>();

    private JsonObject() {}

    /// Adds a member, unless the value is an empty [Optional].
    public JsonObject with(String name, Object value) {
      if (!(value instanceof Optional<?> some)) {
        members.put(name, value);
      } else if (some.isPresent()) {
        members.put(name, some.get());
      }
      return this;
    }
  }

  private static JsonObject object(Record record) {
    JsonObject object = object();
    for (RecordComponent component : record.getClass().getRecordComponents()) {
      try {
        Method accessor = component.getAccessor();
        accessor.setAccessible(true);
        object.with(component.getName(), accessor.invoke(record));
      } catch (ReflectiveOperationException e) {
        throw new IllegalStateException("an accessor only returns a component", e);
      }
    }
    return object;
  }

  private static void write(Object value, JsonGenerator json) throws IOException {
    switch (value) {
      case JsonObject object -> write(object.members, json);
      case Map<?, ?> object -> {
        json.writeStartObject();
        for (Map.Entry<?, ?> member : object.entrySet()) {
          json.writeFieldName(String.valueOf(member.getKey()));
          write(member.getValue(), json);
        }
        json.writeEndObject();
      }
      case Location _, Device _ -> json.writeString(value.toString());
      case Document document -> write(document.json(), json);
      case Record record -> write(object(record), json);
      case Elements elements -> {
        json.writeStartArray();
        elements.forEach(element -> write(element, json));
        json.writeEndArray();
      }
      case Collection<?> array -> {
        json.writeStartArray();
        for (Object element : array) {
          write(element, json);
        }
        json.writeEndArray();
      }
      case TensorShape shape -> json.writeArray(shape.toArray(), 0, shape.rank());
      case float[] values -> {
        json.writeStartArray();
        for (float each : values) {
          json.writeNumber(each);
        }
        json.writeEndArray();
      }
      case Integer number -> json.writeNumber(number);
      case Long number -> json.writeNumber(number);
      case Double number -> json.writeNumber(number);
      case Boolean flag -> json.writeBoolean(flag);
      default -> json.writeString(value.toString());
    }
  }
}
