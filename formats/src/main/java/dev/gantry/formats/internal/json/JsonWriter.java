// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.json;

import com.fasterxml.jackson.core.JsonEncoding;
import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.core.PrettyPrinter;
import com.fasterxml.jackson.core.json.JsonWriteFeature;
import com.fasterxml.jackson.core.util.DefaultIndenter;
import com.fasterxml.jackson.core.util.DefaultPrettyPrinter;
import com.fasterxml.jackson.core.util.JsonRecyclerPools;
import com.fasterxml.jackson.core.util.Separators;
import dev.gantry.core.MisuseException;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import org.jspecify.annotations.Nullable;

/// Writes JSON of a bounded length in UTF-8, which [JsonReader] accepts. It uses Jackson's
/// generator with stricter rules.
public final class JsonWriter {
  private static final JsonFactory JSON =
      JsonFactory.builder()
          .enable(JsonWriteFeature.COMBINE_UNICODE_SURROGATES_IN_UTF8)
          .recyclerPool(JsonRecyclerPools.nonRecyclingPool())
          .build();

  /// Writes the contents of a document.
  @FunctionalInterface
  public interface Body {
    void write(JsonGenerator json) throws IOException;
  }

  private final String what;
  private final long mostBytes;

  /// @param what says in errors what the document is
  /// @param mostBytes the most bytes that the document may have
  public JsonWriter(String what, long mostBytes) {
    this.what = what;
    this.mostBytes = mostBytes;
  }

  /// Writes a document on one line, without any space.
  ///
  /// @throws MisuseException if the document gets too long
  public byte[] compact(Body body) {
    return write(null, body);
  }

  /// Writes a document with one line for each member, laid out as by Python's `json.dumps(…, indent=2)`.
  ///
  /// @throws MisuseException if the document gets too long
  public byte[] indented(Body body) {
    Separators separators =
        Separators.createDefaultInstance()
            .withObjectFieldValueSpacing(Separators.Spacing.AFTER)
            .withObjectEmptySeparator("")
            .withRootSeparator(null);
    return write(
        new DefaultPrettyPrinter(separators).withObjectIndenter(new DefaultIndenter("  ", "\n")),
        body);
  }

  private byte[] write(@Nullable PrettyPrinter printer, Body body) {
    ByteArrayOutputStream text = new Bounded();
    try (JsonGenerator json = JSON.createGenerator(text, JsonEncoding.UTF8)) {
      json.setPrettyPrinter(printer);
      body.write(json);
    } catch (IOException e) {
      throw new UncheckedIOException("memory cannot be written to", e);
    }
    return text.toByteArray();
  }

  /// Requires a text that this can write and [JsonReader] can read.
  ///
  /// @param noun says in the error what the text is
  /// @throws MisuseException if the text has a lone surrogate, which UTF-8 cannot encode, or is longer than
  ///     a reader accepts
  public static void requireText(String noun, String text) {
    if (text.length() > JsonReader.MAX_STRING_CHARACTERS) {
      throw new MisuseException(
          noun + " of more than " + JsonReader.MAX_STRING_CHARACTERS + " characters");
    }
    if (JsonReader.loneSurrogate(text).isPresent()) {
      throw new MisuseException(noun + " with half of a surrogate pair: '" + text + "'");
    }
  }

  private final class Bounded extends ByteArrayOutputStream {
    @Override
    public synchronized void write(byte[] bytes, int offset, int length) {
      if (length > mostBytes - size()) {
        throw new MisuseException(what + " would have more than " + mostBytes + " bytes");
      }
      super.write(bytes, offset, length);
    }
  }
}
