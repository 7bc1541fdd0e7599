// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models;

import ai.djl.Model;
import java.util.NoSuchElementException;
import java.util.PrimitiveIterator;
import java.util.stream.LongStream;
import org.jspecify.annotations.Nullable;

/// Continues one text again and again, as a conversation grows, and computes only what is new: the keys and values of the
/// tokens at its beginning that it had before are kept. For one thread.
public final class TextSession implements AutoCloseable {
  private final TextGenerator generator;
  private final Decoding decoding;
  private @Nullable Tokens latest;

  TextSession(Model model, TextGenerator generator) {
    this.generator = generator;
    decoding = new Decoding(model, generator, new long[1]);
  }

  /// The tokens that follow a text, as long as it is the latest.
  private final class Tokens implements PrimitiveIterator.OfLong {
    private long next = Decoding.NONE;

    @Override
    public boolean hasNext() {
      if (latest == this && next == Decoding.NONE) {
        long[] chosen = decoding.next();
        next = chosen.length == 0 ? Decoding.NONE : chosen[0];
      }
      return latest == this && next != Decoding.NONE;
    }

    @Override
    public long nextLong() {
      if (!hasNext()) {
        throw new NoSuchElementException("the text has ended");
      }
      long token = next;
      next = Decoding.NONE;
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
    decoding.begin(text);
    Tokens tokens = new Tokens();
    latest = tokens;
    return tokens;
  }

  /// Frees the cache.
  @Override
  public void close() {
    latest = null;
    decoding.close();
  }
}
