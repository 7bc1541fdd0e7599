// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli;

import dev.gantry.cli.internal.text.TextToShards;
import dev.gantry.cli.internal.text.TokenOptions;
import dev.gantry.core.DType;
import dev.gantry.core.MisuseException;
import java.nio.file.Path;
import java.util.List;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Option;

/// The options of `convert` for texts.
final class TextOptions {
  static final String TOKENS = "--tokens";
  static final String TOKENIZER = "--tokenizer";
  static final String TEXT = "--text";
  static final String EOS = "--eos";
  static final String U16 = "--u16";

  private static final int MAX_TOKENS = 1 << 24;

  @Option(
      names = TOKENS,
      paramLabel = "N",
      description =
          "Texts IN (JSON Lines, plain or GZIP, or Parquet): concatenate the tokens of all texts,"
              + " and write them as blocks of N tokens.")
  private @Nullable Integer tokens;

  @Option(names = TOKENIZER, paramLabel = "FILE", description = "Texts IN: a tokenizer.json.")
  private @Nullable Path tokenizer;

  @Option(
      names = TEXT,
      paramLabel = "NAME",
      defaultValue = "text",
      description = "Texts IN: the member or column that holds the text; 'text' by default.")
  private String text;

  @Option(
      names = EOS,
      paramLabel = "TOKEN",
      description =
          "Texts IN: the token after each text; by default the eos_token of the"
              + " tokenizer_config.json beside the tokenizer.")
  private @Nullable String eos;

  @Option(
      names = U16,
      description = "Texts IN: write tokens as U16, not I32, for vocabularies of up to 65,536.")
  private boolean u16;

  boolean given() {
    return tokens != null || tokenizer != null;
  }

  /// Whether a file's name ends as JSON Lines files do.
  static boolean areTexts(String name) {
    return name.endsWith(".jsonl") || name.endsWith(".jsonl.gz");
  }

  MisuseException missing() {
    String missing = tokens != null ? TOKENIZER : tokenizer != null ? TOKENS : "both";
    return new MisuseException(
        "texts need " + TOKENS + " and " + TOKENIZER + " (missing: " + missing + ")");
  }

  /// @throws MisuseException if an option is missing or has a wrong value
  TextToShards conversion(List<Path> files, Path output, boolean padded) {
    if (tokens == null || tokenizer == null) {
      throw missing();
    }
    MisuseException.requireRange(TOKENS, tokens, 1, MAX_TOKENS);
    TokenOptions options =
        new TokenOptions(tokens, tokenizer, eos, u16 ? DType.U16 : DType.I32, padded);
    return new TextToShards(files, text, options, output);
  }
}
