// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.text;

import com.fasterxml.jackson.core.JacksonException;
import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonLocation;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.core.StreamReadConstraints;
import com.fasterxml.jackson.core.json.JsonReadFeature;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.internal.store.FileErrors;
import dev.gantry.formats.internal.json.JsonReader;
import java.io.BufferedInputStream;
import java.io.CharConversionException;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.zip.GZIPInputStream;
import java.util.zip.ZipException;
import org.jspecify.annotations.Nullable;

/// Reads a file with one JSON object on each line, plain or compressed by GZIP. One member of
/// each object is a text.
final class JsonLines implements Documents {
  private static final JsonFactory JSON =
      JsonFactory.builder()
          // Python writes NaN and Infinity as bare words.
          .enable(JsonReadFeature.ALLOW_NON_NUMERIC_NUMBERS)
          .streamReadConstraints(
              StreamReadConstraints.builder().maxStringLength(MAX_CHARACTERS).build())
          .build();

  private final Path file;
  private final String member;
  private final JsonParser parser;

  /// @param member the name of the member that holds the text
  JsonLines(Path file, String member) throws IOException {
    this.file = file;
    this.member = member;
    InputStream bytes = open(file);
    try {
      parser = JSON.createParser(isGzip(bytes) ? new GZIPInputStream(bytes, 1 << 16) : bytes);
    } catch (ZipException | EOFException e) {
      bytes.close();
      throw new MalformedFileException(file, 0, "invalid-gzip", cut(e));
    } catch (CharConversionException e) {
      bytes.close();
      throw new MalformedFileException(file, 0, "invalid-json", String.valueOf(e.getMessage()));
    } catch (IOException e) {
      bytes.close();
      throw e;
    }
  }

  private static InputStream open(Path file) {
    try {
      return new BufferedInputStream(Files.newInputStream(file));
    } catch (IOException e) {
      throw FileErrors.of("open", file.toString(), e);
    }
  }

  private static String cut(IOException e) {
    return "the compressed bytes are damaged or cut off: " + e.getMessage();
  }

  private static boolean isGzip(InputStream bytes) throws IOException {
    bytes.mark(2);
    boolean found = bytes.read() == 0x1F && bytes.read() == 0x8B;
    bytes.reset();
    return found;
  }

  @Override
  public @Nullable String next() throws IOException {
    try {
      JsonToken first = parser.nextToken();
      if (first == null) {
        return null;
      }
      if (first != JsonToken.START_OBJECT) {
        throw malformed("no-object", "there is " + named(first) + ", not an object");
      }
      int line = parser.currentTokenLocation().getLineNr();
      String text = null;
      while (parser.nextToken() == JsonToken.FIELD_NAME) {
        boolean wanted = parser.currentName().equals(member);
        JsonToken value = parser.nextToken();
        if (wanted && value != JsonToken.VALUE_STRING) {
          throw malformed(
              "no-text", "the member '" + member + "' is " + named(value) + ", not a text");
        }
        if (wanted) {
          text = parser.getText();
        } else {
          parser.skipChildren();
        }
      }
      if (text == null) {
        throw malformed(
            "no-text", "the object of line " + line + " has no member '" + member + "'");
      }
      return text;
    } catch (JacksonException e) {
      throw malformed("invalid-json", JsonReader.words(e));
    } catch (CharConversionException e) {
      // The parser takes some malformed beginnings for UTF-32, and fails with this exception.
      throw malformed("invalid-json", String.valueOf(e.getMessage()));
    } catch (ZipException | EOFException e) {
      throw malformed("invalid-gzip", cut(e));
    }
  }

  private static String named(JsonToken value) {
    return switch (value) {
      case START_OBJECT -> "an object";
      case START_ARRAY -> "an array";
      case VALUE_STRING -> "a text";
      case VALUE_NUMBER_INT, VALUE_NUMBER_FLOAT -> "a number";
      default -> value.asString();
    };
  }

  /// Makes an error with the parser's line and its offset in the decompressed bytes.
  private MalformedFileException malformed(String kind, String detail) {
    JsonLocation at = parser.currentLocation();
    return new MalformedFileException(
        file, Math.max(0, at.getByteOffset()), kind, "line " + at.getLineNr() + ": " + detail);
  }

  @Override
  public void close() throws IOException {
    parser.close();
  }
}
