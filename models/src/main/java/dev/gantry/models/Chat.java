// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models;

import ai.djl.Model;
import ai.djl.huggingface.tokenizers.HuggingFaceTokenizer;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.models.internal.chat.ChatTemplate;
import dev.gantry.models.internal.chat.TextDecoder;
import dev.gantry.models.internal.texts.TextTokenizer;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.NoSuchElementException;
import java.util.PrimitiveIterator;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Supplier;
import java.util.stream.LongStream;

/// Talks with a model: a conversation becomes a text as the folder's chat template says, and the model continues it. The
/// keys and values of the conversation are kept, so that each turn costs its new tokens only. For one thread at a time.
///
/// ```java
/// try (Chat chat = hub.chat()) {
///   chat.stream(List.of(ChatMessage.user("Why is the sky blue?"))).forEachRemaining(System.out::print);
/// }
/// ```
public final class Chat implements AutoCloseable {
  private final HubModel hub;
  private final Model model;
  private final HuggingFaceTokenizer tokenizer;
  private final ChatTemplate template;
  private final TextSession session;
  private final List<String> stops;

  /// Held while something is computed. Closing waits for it: the tokenizer's library ends the process if it is freed
  /// meanwhile.
  private final ReentrantLock use = new ReentrantLock();

  private boolean closed;

  private Chat(
      HubModel hub,
      Model model,
      HuggingFaceTokenizer tokenizer,
      ChatTemplate template,
      TextGenerator generator,
      List<String> stops) {
    this.hub = hub;
    this.model = model;
    this.tokenizer = tokenizer;
    this.template = template;
    this.stops = stops;
    session = generator.session(model);
  }

  static Chat open(HubModel hub, TextOptions options, TextGenerator generator, List<String> stops) {
    for (String stop : stops) {
      if (MisuseException.requireGiven("a text that ends an answer", stop).isEmpty()) {
        throw new MisuseException("a text that ends an answer must not be empty");
      }
    }
    ChatTemplate template = ChatTemplate.read(hub.folder());
    HuggingFaceTokenizer tokenizer = TextTokenizer.library(hub.folder(), false);
    return Cleanup.orUndo(
        () -> {
          Model model = hub.load(options.device(), options.load(false));
          return Cleanup.orUndo(
              () -> new Chat(hub, model, tokenizer, template, generator, stops), model::close);
        },
        tokenizer::close);
  }

  /// Returns the text that the model continues: the conversation, as the template writes it, and the beginning of the
  /// answer.
  ///
  /// @throws MisuseException if the template refuses the conversation, such as one without a user's message
  /// @throws MalformedFileException if the template cannot be rendered
  public String prompt(List<ChatMessage> conversation) {
    MisuseException.requireGiven("conversation", conversation);
    return template.render(
        conversation.stream()
            .map(message -> MisuseException.requireGiven("message", message))
            .map(message -> Map.of("role", message.role(), "content", message.content()))
            .toList(),
        true);
  }

  /// Returns the whole answer.
  ///
  /// @param conversation all of it, earlier answers included
  /// @throws dev.gantry.core.GantryException as [#stream]
  public String answer(List<ChatMessage> conversation) {
    return alone(() -> {
      StringBuilder answer = new StringBuilder();
      stream(conversation).forEachRemaining(answer::append);
      return answer.toString();
    });
  }

  /// Refuses a second thread, which would end the first one's answer without a word.
  private <T> T alone(Supplier<T> work) {
    if (!use.tryLock()) {
      throw new MisuseException("a chat is for one thread at a time: another one is answered now");
    }
    try {
      if (closed) {
        throw new MisuseException("this chat is closed");
      }
      return work.get();
    } finally {
      use.unlock();
    }
  }

  /// Begins an answer, and returns its text as it comes, in pieces of whole characters. Each piece is computed when it is
  /// asked for, so whoever asks no more ends the answer; so does the next call.
  ///
  /// @param conversation all of it, earlier answers included
  /// @throws dev.gantry.core.GantryException as [#prompt]; also if the conversation is longer than the model's texts
  public Iterator<String> stream(List<ChatMessage> conversation) {
    String prompt = prompt(conversation);
    return alone(() -> {
      // The template writes all special tokens, the first one included.
      long[] text = tokenizer.encode(prompt, false, false).getIds();
      return new Pieces(session.tokens(text));
    });
  }

  /// The pieces of an answer.
  private final class Pieces implements Iterator<String> {
    private final PrimitiveIterator.OfLong tokens;
    private final TextDecoder decoder = new TextDecoder(ids -> tokenizer.decode(ids, true), stops);
    private String next = "";
    private boolean ended;

    Pieces(PrimitiveIterator.OfLong tokens) {
      this.tokens = tokens;
    }

    @Override
    public boolean hasNext() {
      return !next.isEmpty() || (!ended && alone(this::advance));
    }

    private boolean advance() {
      while (next.isEmpty() && !ended) {
        long token = tokens.hasNext() ? tokens.nextLong() : -1;
        boolean isEnd = LongStream.of(hub.endTokens()).anyMatch(end -> end == token);
        if (token < 0 || isEnd) {
          next = decoder.end();
          ended = true;
        } else {
          next = decoder.add(token);
          ended = decoder.isStopped();
        }
      }
      return !next.isEmpty();
    }

    @Override
    public String next() {
      if (!hasNext()) {
        throw new NoSuchElementException("the answer has ended");
      }
      String piece = next;
      next = "";
      return piece;
    }
  }

  /// Frees the model's memory, the cache and the tokenizer. Waits for what another thread computes: a whole answer, or
  /// the next piece of a stream.
  @Override
  public void close() {
    use.lock();
    try {
      closed = true;
      // The cache's arrays lie below the model's manager, and go with it.
      model.close();
      tokenizer.close();
    } finally {
      use.unlock();
    }
  }
}
