// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.text;

import ai.djl.huggingface.tokenizers.Encoding;
import ai.djl.huggingface.tokenizers.HuggingFaceTokenizer;
import dev.gantry.cli.internal.input.Input;
import dev.gantry.cli.internal.output.Progress;
import dev.gantry.cli.internal.output.WrittenFiles;
import dev.gantry.cli.internal.parquet.ParquetRows;
import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TensorShape;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.store.FileErrors;
import dev.gantry.formats.Field;
import dev.gantry.formats.shards.ShardOptions;
import dev.gantry.formats.shards.ShardWriter;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/// Writes texts as raw tensor shards. Their tokens are concatenated, with an end token after each
/// text, and cut into blocks of one length. Memory holds only a few texts, whatever the size of
/// the files.
///
/// @param files JSON Lines or Parquet files
/// @param column the JSON member or Parquet column that holds the texts
public record TextToShards(List<Path> files, String column, TokenOptions options, Path output) {
  /// How many texts are tokenized at once, on all processors.
  private static final int BATCH_TEXTS = 256;

  private static final int BATCH_CHARACTERS = 1 << 20;

  public WrittenFiles run(GantrySession session, ShardOptions shards) throws IOException {
    Input.requireNoWeights(session, output);
    long start = System.nanoTime();
    try (HuggingFaceTokenizer tokenizer = tokenizer()) {
      int end = endToken(session, tokenizer);
      ShardOptions noted =
          shards.withMetadata(
              Map.of(
                  "tokenizer", String.valueOf(options.tokenizer().getFileName()),
                  "eos", Integer.toString(end)));
      Field field = new Field("tokens", options.dtype(), TensorShape.of(options.length()));
      try (ShardWriter writer = ShardWriter.create(session, output, List.of(field), noted);
          Progress bar = Progress.ofSteps("convert", files.size())) {
        TokenBlocks blocks = new TokenBlocks(writer, options, end);
        for (int i = 0; i < files.size(); i++) {
          try (Documents documents = open(files.get(i))) {
            while (add(documents, tokenizer, blocks)) {
              bar.onProgress(i, files.size());
            }
          }
        }
        blocks.finish();
        requireBlocks(blocks);
        return WrittenFiles.of(output, writer.finish(), start);
      }
    }
  }

  /// @throws MalformedFileException if there is no text
  /// @throws MisuseException if all texts together do not fill a block
  private void requireBlocks(TokenBlocks blocks) {
    if (blocks.written() == 0 && blocks.left() == 0) {
      throw new MalformedFileException(files.getFirst(), 0, "no-text", "there are no texts");
    }
    if (blocks.written() == 0) {
      throw new MisuseException(
          "the texts have %d tokens, too few for a block of %d; --pad pads the block"
              .formatted(blocks.left(), options.length()));
    }
  }

  private Documents open(Path file) throws IOException {
    if (Files.isDirectory(file)) {
      throw new MisuseException("texts must be files, not folders (was " + file + ")");
    }
    return file.toString().endsWith(ParquetRows.SUFFIX)
        ? new ParquetTexts(file, column)
        : new JsonLines(file, column);
  }

  /// Tokenizes the next texts, and adds their tokens to the blocks.
  ///
  /// @return whether there may be more
  private static boolean add(
      Documents documents, HuggingFaceTokenizer tokenizer, TokenBlocks blocks) throws IOException {
    List<String> texts = new ArrayList<>();
    int characters = 0;
    String text = documents.next();
    while (text != null) {
      texts.add(text);
      characters += text.length();
      if (texts.size() == BATCH_TEXTS || characters >= BATCH_CHARACTERS) {
        break;
      }
      text = documents.next();
    }
    if (!texts.isEmpty()) {
      for (Encoding encoding : tokenizer.batchEncode(texts, false, false)) {
        blocks.add(encoding.getIds());
      }
    }
    return text != null;
  }

  private HuggingFaceTokenizer tokenizer() throws IOException {
    Path file = options.tokenizer();
    if (Files.notExists(file)) {
      throw FileErrors.of("open", "--tokenizer " + file, new NoSuchFileException(file.toString()));
    }
    if (!Files.isRegularFile(file)) {
      throw new MisuseException(
          "--tokenizer must be a tokenizer.json (was %s, which is not a file)".formatted(file));
    }
    try {
      return HuggingFaceTokenizer.builder()
          .optTokenizerPath(file)
          .optTruncation(false)
          .optPadding(false)
          .build();
    } catch (RuntimeException e) {
      // The native library throws this exception for a file that it cannot parse.
      throw new MisuseException(
          "--tokenizer: DJL's tokenizers cannot read " + file + ": " + e.getMessage());
    }
  }

  private int endToken(GantrySession session, HuggingFaceTokenizer tokenizer) {
    String text =
        options
            .endToken(session)
            .orElseThrow(() ->
                new MisuseException(
                    "--eos must name the token after each text: no tokenizer_config.json beside "
                        + Location.of(options.tokenizer())
                        + " names one"));
    long[] ids = tokenizer.encode(text, false, false).getIds();
    if (ids.length != 1) {
      throw new MisuseException(
          "--eos must be one token of the tokenizer ('" + text + "' is " + ids.length + " tokens)");
    }
    return Math.toIntExact(ids[0]);
  }
}
