// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models;

import ai.djl.Model;
import java.util.NoSuchElementException;
import java.util.PrimitiveIterator;
import java.util.stream.LongStream;
import org.jspecify.annotations.Nullable;

/// Continues a growing text, such as a conversation. The session keeps the keys and values of
/// earlier tokens, so each call computes only the tokens after the beginning that the text shares
/// with the previous text. Not thread-safe.
public final class TextSession implements AutoCloseable {
  private final TextGenerator generator;
  private final Decoding decoding;
  private @Nullable Tokens latest;

  TextSession(Model model, TextGenerator generator) {
    this.generator = generator;
    decoding = new Decoding(model, generator, new long[1]);
  }

  /// The tokens that follow a text. The iterator ends when the session begins another text.
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

  /// Returns how many tokens at the beginning of a text are in the cache.
  public int known(long... text) {
    return decoding.known(text);
  }

  /// Continues a text, as [TextGenerator#generate(Model, long...)] does.
  ///
  /// @param text the ids of all tokens of the text, including those of earlier prompts and answers
  /// @return the ids of the tokens that follow
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

  /// Begins to continue a text. The iterator computes each token when `next` is called, so a
  /// caller may stop at any token. The next call of this method or of `generate` ends the
  /// iterator. The generator's listener does not receive these tokens.
  ///
  /// @param text the ids of all tokens of the text, including those of earlier prompts and answers
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
