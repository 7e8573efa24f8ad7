# Loops, blocks, exceptions, regular expressions, strings, threads.
class Shape
  include Comparable
  attr_reader :name

  def initialize(name)
    @name = name
  end

  def area
    raise NotImplementedError, "#{self.class} has no area"
  end

  def <=>(other)
    area <=> other.area
  end

  def method_missing(name, *arguments)
    name.to_s.end_with?('?') ? @name == name.to_s.chomp('?') : super
  end

  def respond_to_missing?(name, all = false)
    name.to_s.end_with?('?') || super
  end
end

class Rectangle < Shape
  def initialize(width, height)
    super('rectangle')
    @width, @height = width, height
  end

  def area
    @width * @height
  end
end

shapes = (1..200).map { |i| Rectangle.new(i % 17, i % 23) }
puts shapes.max.area, shapes.min_by(&:area).area, shapes.sort.map(&:area).last(5).inspect
puts shapes.first.rectangle?, shapes.first.circle?

failures = 0
500.times do |i|
  begin
    i.even? ? Shape.new('none').area : shapes.first.unknown
  rescue NotImplementedError, NoMethodError => e
    failures += 1 if e.message =~ /no area|undefined method/
  ensure
    failures += 0
  end
end
puts failures

words = 'the quick brown fox jumps over the lazy dog ' * 50
puts words.scan(/\b(\w)(\w*)\b/).map { |first, rest| "#{rest}#{first}ay" }.uniq.sort.join(' ')
puts words.gsub(/(?<vowel>[aeiou])/) { Regexp.last_match(:vowel).upcase }.hash == words.hash
puts words.each_char.group_by(&:itself).transform_values(&:size).sort.inspect

fibonacci = Hash.new { |known, n| known[n] = n < 2 ? n : known[n - 1] + known[n - 2] }
puts fibonacci[150]

found = catch(:found) do
  (1..100).each { |a| (a..100).each { |b| throw :found, [a, b] if a * a + b * b == 65 * 65 } }
  nil
end
puts found.inspect

generator = Enumerator.new { |yielder| n = 0; loop { yielder << (n += 1) ** 2 } }
puts generator.lazy.select(&:even?).first(5).inspect

queue = Queue.new
workers = 4.times.map { |w| Thread.new { 250.times { |i| queue << w * 1000 + i } } }
workers.each(&:join)
puts queue.size, Array.new(queue.size) { queue.pop }.sum

text = +''
2000.times { |i| text << format('%05d ', i) << i.to_s(2).tr('01', '.#') }
puts text.length, text.sum, text.unpack('C*').inject(:^)
