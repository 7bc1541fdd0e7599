// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models.internal.texts;

import ai.djl.huggingface.tokenizers.Encoding;
import ai.djl.huggingface.tokenizers.HuggingFaceTokenizer;
import ai.djl.util.StringPair;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.threads.UseGate;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Map;
import java.util.Optional;
import java.util.function.Supplier;
import java.util.stream.IntStream;

/// The tokenizer in a folder's `tokenizer.json`. It adds the model's special tokens to each text.
/// Thread-safe until it is closed.
public final class TextTokenizer implements AutoCloseable {
  /// Says how texts are tokenized.
  ///
  /// @param longest the most tokens of a text or pair, special tokens included; longer ones are
  ///     cut off, and in a pair the longer text loses tokens first
  /// @param lowerCase whether letters are converted to lower case before all else
  /// @param padding the token that fills rows of a batch, such as `[PAD]`; empty if there is none
  /// @param vocabulary the number of tokens in the model's vocabulary
  /// @param types the number of token types that the model knows; 0 if it takes no types
  public record Settings(
      int longest, boolean lowerCase, Optional<String> padding, long vocabulary, long types) {}

  private static final String FILE = "tokenizer.json";

  private final HuggingFaceTokenizer tokenizer;
  private final Settings settings;
  private final Path file;
  private final long padding;

  /// Guards the tokenizer, because its native library ends the process if the tokenizer is freed
  /// during a call.
  private final UseGate gate = new UseGate("embedder, scorer or classifier", "call");

  private TextTokenizer(HuggingFaceTokenizer tokenizer, Settings settings, Path file) {
    this.tokenizer = tokenizer;
    this.settings = settings;
    this.file = file;
    // If there is no padding token, any token serves, because the mask hides it.
    this.padding =
        settings.padding().stream()
            .map(token -> tokenizer.encode(token, false, false).getIds())
            .filter(ids -> ids.length == 1)
            .mapToLong(ids -> ids[0])
            .findFirst()
            .orElse(0);
  }

  /// @throws MisuseException if there is no `tokenizer.json`
  /// @throws MalformedFileException if the file is no valid tokenizer
  public static TextTokenizer open(Path folder, Settings settings) {
    return new TextTokenizer(library(folder, settings.lowerCase()), settings, folder.resolve(FILE));
  }

  /// Opens the tokenizer in a folder's `tokenizer.json`, which neither pads nor cuts off texts.
  ///
  /// @throws MisuseException if there is no such file
  /// @throws MalformedFileException if the file is no valid tokenizer
  public static HuggingFaceTokenizer library(Path folder, boolean lowerCase) {
    Path file = folder.resolve(FILE);
    if (!Files.isRegularFile(file)) {
      throw new MisuseException(
          "texts need a tokenizer.json in " + folder + ", as fast tokenizers are saved");
    }
    Map<String, String> options = Map.of("padding", "false", "truncation", "false");
    try (InputStream json = lowerCase ? lowering(file) : Files.newInputStream(file)) {
      return HuggingFaceTokenizer.newInstance(json, options);
    } catch (IOException fault) {
      throw new UncheckedIOException(fault);
    } catch (RuntimeException fault) {
      throw new MalformedFileException(
          Location.of(file), 0, "not-a-tokenizer", String.valueOf(fault.getMessage()));
    }
  }

  /// Returns the tokenizer's JSON with a first step that converts letters to lower case. Special
  /// tokens in a text are not converted.
  private static InputStream lowering(Path file) throws IOException {
    JsonObject json = JsonParser.parseString(Files.readString(file)).getAsJsonObject();
    JsonObject steps =
        JsonParser.parseString(
                "{\"type\": \"Sequence\", \"normalizers\": [{\"type\": \"Lowercase\"}]}")
            .getAsJsonObject();
    JsonElement present = json.get("normalizer");
    if (present != null && present.isJsonObject()) {
      steps.getAsJsonArray("normalizers").add(present);
    }
    json.add("normalizer", steps);
    return new ByteArrayInputStream(json.toString().getBytes(StandardCharsets.UTF_8));
  }

  /// @param prompt the text that is put before `text`
  /// @throws MisuseException if the text is null or has no token, or has a token that the model
  ///     does not know
  public Tokens encode(String prompt, String text) {
    MisuseException.requireGiven("text", text);
    return tokens(tokenizer.encode(prompt + text, true, false));
  }

  /// @param prompt the text that is put before the first text of the pair
  /// @throws MisuseException as [#encode(String, String)]
  public Tokens encode(String prompt, StringPair pair) {
    MisuseException.requireGiven("pair", pair);
    String first = MisuseException.requireGiven("text", pair.getKey());
    String second = MisuseException.requireGiven("text", pair.getValue());
    return tokens(tokenizer.encode(prompt + first, second, true, false));
  }

  /// Runs work that uses the tokenizer. [#close] waits for it before it frees the tokenizer.
  ///
  /// @throws MisuseException if this is closed
  <T> T during(Supplier<T> work) {
    return gate.using(work);
  }

  /// Returns how many tokens a prompt adds at the beginning of a text, special tokens included. A
  /// special token at the prompt's end counts as part of the text, even if the prompt fills the
  /// whole text.
  public int promptLength(String prompt) {
    Encoding encoded = during(() -> tokenizer.encode(prompt, true, false));
    int all = encoded.getIds().length;
    int length = Math.min(all, settings.longest());
    return all > 0 && encoded.getSpecialTokenMask()[all - 1] == 1 ? length - 1 : length;
  }

  long padding() {
    return padding;
  }

  private Tokens tokens(Encoding encoding) {
    long[] ids = encoding.getIds();
    if (ids.length == 0) {
      throw new MisuseException(
          "a text must have a token or more (the tokenizer makes none of it)");
    }
    for (long id : ids) {
      if (id >= settings.vocabulary()) {
        throw new MisuseException(
            "%s makes the token %d; the model knows %d tokens"
                .formatted(file, id, settings.vocabulary()));
      }
    }
    long[] types = encoding.getTypeIds();
    for (int i = 0; i < types.length; i++) {
      types[i] = types[i] < settings.types() ? types[i] : 0;
    }
    int[] kept = ids.length <= settings.longest() ? null : kept(encoding);
    return kept == null
        ? new Tokens(ids, types)
        : new Tokens(chosen(ids, kept), chosen(types, kept));
  }

  /// Returns the indexes of the tokens that are kept: all special tokens, and the first tokens of
  /// each text. The tokenizer's own truncation of a pair takes time and memory proportional to the
  /// product of both lengths.
  private int[] kept(Encoding encoding) {
    long[] special = encoding.getSpecialTokenMask();
    long[] texts = encoding.getSequenceIds();
    int[] counts = new int[2];
    for (int i = 0; i < texts.length; i++) {
      if (special[i] == 0) {
        counts[(int) texts[i]]++;
      }
    }
    int room = Math.max(0, settings.longest() - (texts.length - counts[0] - counts[1]));
    int few = Math.min(Math.min(counts[0], counts[1]), room / 2);
    int[] left = counts[0] > counts[1] ? new int[] {room - few, few} : new int[] {few, room - few};
    return IntStream.range(0, texts.length)
        .filter(i -> special[i] == 1 || left[(int) texts[i]]-- > 0)
        .toArray();
  }

  private static long[] chosen(long[] values, int... places) {
    return Arrays.stream(places).mapToLong(place -> values[place]).toArray();
  }

  /// Waits until no call uses the tokenizer, and frees it.
  @Override
  public void close() {
    gate.close(tokenizer::close);
  }
}
