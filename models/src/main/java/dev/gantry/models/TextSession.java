// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models;

import ai.djl.Model;
import dev.gantry.models.internal.sampling.TokenChooser;
import java.util.NoSuchElementException;
import java.util.PrimitiveIterator;
import java.util.stream.LongStream;

/// Continues one text again and again, as a conversation grows, and computes only what is new: the keys and values of the
/// tokens at its beginning that it had before are kept. For one thread.
public final class TextSession implements AutoCloseable {
  /// How many generated tokens get room in the cache at once; for more, it doubles.
  private static final int EXPECTED_TOKENS = 1024;

  private static final long NONE = -1;

  private final Model model;
  private final TextGenerator generator;
  private final Decoding decoding;

  private Tokens latest;

  TextSession(Model model, TextGenerator generator) {
    this.model = model;
    this.generator = generator;
    decoding = new Decoding(model, new long[1]);
    latest = new Tokens(new long[0], 0);
  }

  /// The tokens that follow a text.
  private final class Tokens implements PrimitiveIterator.OfLong {
    private final TokenChooser chooser = generator.chooser(1);
    private long[] text;
    private int left;
    private long next = NONE;

    Tokens(long[] text, int left) {
      this.text = text.clone();
      this.left = left;
      chooser.saw(0, text);
    }

    @Override
    public boolean hasNext() {
      if (left > 0 && next == NONE) {
        long[] chosen = decoding.next(new long[][] {text}, chooser, generator.cancelled());
        if (chosen.length == 0) {
          left = 0;
        } else {
          next = chosen[0];
        }
      }
      return left > 0;
    }

    @Override
    public long nextLong() {
      if (!hasNext()) {
        throw new NoSuchElementException("the text has ended");
      }
      long token = next;
      next = NONE;
      left = generator.isEnd(token) ? 0 : left - 1;
      text = Decoding.with(token, text);
      chooser.saw(0, token);
      return token;
    }
  }

  /// How many tokens at the beginning of a text have been computed already.
  public int known(long... text) {
    return decoding.known(text);
  }

  /// Continues a text, as [TextGenerator#generate(Model, long...)] does.
  ///
  /// @param text the ids of all its tokens, those of earlier turns and answers included
  /// @return the ids of those that follow
  /// @throws dev.gantry.core.MisuseException as [TextGenerator#generate(Model, long...)]
  public long[] generate(long... text) {
    PrimitiveIterator.OfLong tokens = tokens(text);
    LongStream.Builder generated = LongStream.builder();
    tokens.forEachRemaining((long token) -> {
      generator.heard(token);
      generated.add(token);
    });
    return generated.build().toArray();
  }

  /// Begins to continue a text. Each token is computed when it is asked for, so whoever asks no more ends it; so does the
  /// next call of this or of `generate`. The listener of the generator does not hear of these tokens.
  ///
  /// @param text the ids of all its tokens, those of earlier turns and answers included
  /// @throws dev.gantry.core.MisuseException as [TextGenerator#generate(Model, long...)]
  public PrimitiveIterator.OfLong tokens(long... text) {
    int room = Decoding.room(model, text);
    latest.left = 0;
    latest = new Tokens(text, Math.min(room, generator.tokens()));
    decoding.cache().reserve((long) text.length + Math.min(latest.left, EXPECTED_TOKENS));
    return latest;
  }

  /// Frees the cache.
  @Override
  public void close() {
    latest.left = 0;
    decoding.close();
  }
}
